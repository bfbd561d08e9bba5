"""What is publicly known of the chips that XLA compiles for, and which chip a dump names.

Every figure is for one device as XLA counts devices: a chip whose two TensorCores work as one
(v4, v5p), one TensorCore where they do not (v2, v3, 7x), a GPU. `None` stands where no public
figure was found. Sources, by the letter that each chip's comment cites:

C   Cloud TPU documentation, "System architecture" of each generation
    (docs.cloud.google.com/tpu/docs/v3, v4, v5e, v5p, v6e, tpu7x).
J   `jax/_src/pallas/mosaic/tpu_info.py` of jax 0.10.2: cores, VMEM, HBM, MXU width and count.
S   "How to Scale Your Model", chapter "How to Think About TPUs" (jax-ml/scaling-book, tpus.md):
    clock of v5e, bandwidth of an ICI link and of PCIe.
P   Jouppi et al., "TPU v4: An Optically Reconfigurable Supercomputer", ISCA 2023: clock, links.
B   The slot table (`CAPACITY`) of libtpu 0.0.52's own `hlo-static-per-bundle-utilization.txt`.
D   Derived: clock = peak of C over the operations per cycle that libtpu's `estimated_cycles` of
    a large bf16 matmul implies (131,072 for four 128-wide MXUs, 524,288 on v6e and 7x).
X   `xla/backends/gpu/target_config/specs/*.txtpb` of openxla/xla: memory, bandwidth, clock.
N   NVIDIA's data sheets of the A100, H100, H200 and B200 SXM parts, dense rates; AMD's of MI300X.
"""

import re
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Literal

from hlo_tools.errors import SettingsError
from hlo_tools.hlo.module import Module

Backend = Literal["tpu", "gpu", "cpu", "neuron", "unknown"]

LANES = 128
SUBLANES = 8
NATIVE_TILE = (SUBLANES, LANES)
"""The shape of a TPU vector register of 32-bit elements, on every generation (J)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chip:
    """One device of a generation.

    Attributes:
      name: as Cloud and JAX call the generation, for example `v5e`.
      platform: `tpu` or `gpu`.
      cores: TensorCores that work together as this device; 1 for a GPU.
      clock_hz: of the cores; what `estimated_cycles` is counted in.
      bf16_flops: peak multiply-add operations a second (two for each pair) on bf16 operands.
      f32_flops: peak for f32 operands multiplied in full; `None` on TPUs, which compose f32
        products from bf16 passes.
      int8_ops: peak on 8-bit integers; `None` where that is not faster than, or not known.
      fp8_flops: peak on 8-bit floats.
      mxu_size: rows and columns of one systolic array.
      valu_slots: vector arithmetic operations that one core issues in a cycle, each on 1,024
        32-bit elements.
      eup_slots: the same for transcendental functions.
      vload_slots: vector loads from VMEM in a cycle.
      vstore_slots: vector stores to VMEM in a cycle.
      hbm_bytes: capacity of device memory.
      hbm_bandwidth: bytes a second.
      vmem_bytes: on-chip vector memory of all its cores.
      ici_link_bandwidth: bytes a second, one way, of one link to a neighbour (TPU) or to all
        peers (GPU).
      ici_links: links of a device.
      host_bandwidth: bytes a second, one way, between the device and its host.
    """

    name: str
    platform: Literal["tpu", "gpu"]
    hbm_bytes: int
    hbm_bandwidth: float
    bf16_flops: float
    cores: int = 1
    clock_hz: float | None = None
    f32_flops: float | None = None
    int8_ops: float | None = None
    fp8_flops: float | None = None
    mxu_size: int | None = None
    valu_slots: int | None = None
    eup_slots: int | None = None
    vload_slots: int | None = None
    vstore_slots: int | None = None
    vmem_bytes: int | None = None
    ici_link_bandwidth: float | None = None
    ici_links: int | None = None
    host_bandwidth: float | None = None

    @property
    def tile(self) -> tuple[int, int] | None:
        """Sublanes and lanes of a vector register; `None` for a GPU."""
        return NATIVE_TILE if self.platform == "tpu" else None

    def peak(self, element_type: str) -> float:
        """Peak operations a second of the matrix unit on operands of `element_type`."""
        if element_type.startswith("f8") and self.fp8_flops:
            return self.fp8_flops
        if element_type in ("s8", "u8", "s4", "u4") and self.int8_ops:
            return self.int8_ops
        if element_type == "f32" and self.f32_flops:
            return self.f32_flops
        return self.bf16_flops

    @property
    def single_core(self) -> "Chip":
        """One core of a device whose cores can also be used apart, with its share of the chip."""
        if self.cores == 1:
            return self
        count = self.cores
        return replace(
            self,
            cores=1,
            bf16_flops=self.bf16_flops / count,
            int8_ops=self.int8_ops / count if self.int8_ops else None,
            fp8_flops=self.fp8_flops / count if self.fp8_flops else None,
            hbm_bytes=self.hbm_bytes // count,
            hbm_bandwidth=self.hbm_bandwidth / count,
            vmem_bytes=self.vmem_bytes // count if self.vmem_bytes else None,
        )


_MIB = 1 << 20
_GIB = 1 << 30

CHIPS: tuple[Chip, ...] = (
    # C: 123 Tflop/s, 32 GiB and 900 GB/s a chip of two cores that are two devices. J: MXU, VMEM.
    # No public clock or slot figure was found.
    Chip(
        name="v3",
        platform="tpu",
        bf16_flops=123e12 / 2,
        hbm_bytes=16 * _GIB,
        hbm_bandwidth=900e9 / 2,
        vmem_bytes=16 * _MIB,
        mxu_size=128,
        ici_link_bandwidth=1e11,  # S
        ici_links=4,  # C: 2D torus
        host_bandwidth=1.5e10,  # S
    ),
    # C: 275 Tflop/s (bf16 or int8), 32 GiB, 1,200 GB/s; J: 16 MiB of VMEM a core; P: 1.05 GHz,
    # six links; S: 45 GB/s a link.
    Chip(
        name="v4",
        platform="tpu",
        cores=2,
        clock_hz=1.05e9,
        bf16_flops=275e12,
        int8_ops=275e12,
        hbm_bytes=32 * _GIB,
        hbm_bandwidth=1200e9,
        vmem_bytes=32 * _MIB,
        mxu_size=128,
        valu_slots=2,
        eup_slots=1,
        vload_slots=1,
        vstore_slots=1,
        ici_link_bandwidth=4.5e10,
        ici_links=6,
        host_bandwidth=1.5e10,
    ),
    # C: 197 Tflop/s, 393 Tops int8, 16 GiB, 819 GB/s, four ports, 400 GB/s both ways together;
    # S: 1.5 GHz; J: 128 MiB of VMEM.
    Chip(
        name="v5e",
        platform="tpu",
        clock_hz=1.5e9,
        bf16_flops=197e12,
        int8_ops=393e12,
        hbm_bytes=16 * _GIB,
        hbm_bandwidth=819e9,
        vmem_bytes=128 * _MIB,
        mxu_size=128,
        valu_slots=4,
        eup_slots=1,
        vload_slots=3,
        vstore_slots=1,
        ici_link_bandwidth=5e10,
        ici_links=4,
        host_bandwidth=1.5e10,
    ),
    # C: 459 Tflop/s, 95 GiB, 2,765 GB/s, 1,200 GB/s of ICI both ways, 3D torus; D: 1.75 GHz;
    # J: int8, 64 MiB of VMEM a core.
    Chip(
        name="v5p",
        platform="tpu",
        cores=2,
        clock_hz=1.75e9,
        bf16_flops=459e12,
        int8_ops=918e12,
        hbm_bytes=95 * _GIB,
        hbm_bandwidth=2765e9,
        vmem_bytes=128 * _MIB,
        mxu_size=128,
        valu_slots=4,
        eup_slots=1,
        vload_slots=3,
        vstore_slots=1,
        ici_link_bandwidth=1e11,
        ici_links=6,
        host_bandwidth=1.5e10,
    ),
    # C: 918 Tflop/s, 1,836 Tops int8, 32 GiB, 1,638 GB/s, four ports, 800 GB/s both ways;
    # D: 1.75 GHz; J: fp8 at the rate of bf16, 128 MiB of VMEM; S: 32 GB/s to the host.
    Chip(
        name="v6e",
        platform="tpu",
        clock_hz=1.75e9,
        bf16_flops=918e12,
        int8_ops=1836e12,
        fp8_flops=918e12,
        hbm_bytes=32 * _GIB,
        hbm_bandwidth=1638e9,
        vmem_bytes=128 * _MIB,
        mxu_size=256,
        valu_slots=4,
        eup_slots=1,
        vload_slots=3,
        vstore_slots=2,
        ici_link_bandwidth=1e11,
        ici_links=4,
        host_bandwidth=3.2e10,
    ),
    # C: 2,307 Tflop/s bf16, 4,614 fp8 and 192 GiB a chip of two cores that are two devices;
    # J: 7.4 TB/s a chip, 64 MiB of VMEM a core; D: 2.2 GHz; Google's announcement of Ironwood:
    # 1.2 TB/s of ICI both ways a chip, 3D torus; the two devices of a chip share its links.
    Chip(
        name="7x",
        platform="tpu",
        clock_hz=2.2e9,
        bf16_flops=2307e12 / 2,
        fp8_flops=4614e12 / 2,
        hbm_bytes=96 * _GIB,
        hbm_bandwidth=7.4e12 / 2,
        vmem_bytes=64 * _MIB,
        mxu_size=256,
        valu_slots=4,
        eup_slots=1,
        vload_slots=3,
        vstore_slots=2,
        ici_link_bandwidth=1e11 / 2,
        ici_links=6,
    ),
    # N: 312 Tflop/s bf16, 156 TF32, 624 Tops int8, NVLink 600 GB/s both ways; X: memory, clock.
    Chip(
        name="a100",
        platform="gpu",
        clock_hz=1.41e9,
        bf16_flops=312e12,
        f32_flops=156e12,
        int8_ops=624e12,
        hbm_bytes=85_100_068_864,
        hbm_bandwidth=2.03904e12,
        ici_link_bandwidth=300e9,
        ici_links=1,
    ),
    # N: 989 Tflop/s bf16, 495 TF32, 1,979 fp8 and int8, NVLink 900 GB/s both ways; X: the rest.
    Chip(
        name="h100",
        platform="gpu",
        clock_hz=1.98e9,
        bf16_flops=989e12,
        f32_flops=495e12,
        int8_ops=1979e12,
        fp8_flops=1979e12,
        hbm_bytes=84_942_979_072,
        hbm_bandwidth=3.35232e12,
        ici_link_bandwidth=450e9,
        ici_links=1,
        host_bandwidth=34_359_738_368,
    ),
    Chip(
        name="h200",
        platform="gpu",
        clock_hz=1.98e9,
        bf16_flops=989e12,
        f32_flops=495e12,
        int8_ops=1979e12,
        fp8_flops=1979e12,
        hbm_bytes=151_397_597_184,
        hbm_bandwidth=4.8e12,
        ici_link_bandwidth=450e9,
        ici_links=1,
        host_bandwidth=34_359_738_368,
    ),
    # N: 2,250 Tflop/s bf16, 1,125 TF32, 4,500 fp8 and int8, NVLink 1,800 GB/s both ways; X.
    Chip(
        name="b200",
        platform="gpu",
        clock_hz=1.965e9,
        bf16_flops=2250e12,
        f32_flops=1125e12,
        int8_ops=4500e12,
        fp8_flops=4500e12,
        hbm_bytes=191_514_411_008,
        hbm_bandwidth=7.67232e12,
        ici_link_bandwidth=900e9,
        ici_links=1,
        host_bandwidth=68_719_476_736,
    ),
    # N: 1,307 Tflop/s bf16, 163.4 f32 (matrix), 2,615 fp8 and int8, 192 GB, 5.3 TB/s; X: clock.
    Chip(
        name="mi300x",
        platform="gpu",
        clock_hz=2.1e9,
        bf16_flops=1307e12,
        f32_flops=163.4e12,
        int8_ops=2615e12,
        fp8_flops=2615e12,
        hbm_bytes=192_000_000_000,
        hbm_bandwidth=5.3e12,
    ),
)

_ALIASES = {
    "v5lite": "v5e",
    "v5litepod": "v5e",
    "v6lite": "v6e",
    "trillium": "v6e",
    "v5": "v5p",
    "v4p": "v4",
    "7": "7x",
    "v7": "7x",
    "v7x": "7x",
    "tpu7": "7x",
    "ironwood": "7x",
    "mi300": "mi300x",
    "gb200": "b200",
}
"""Other names, spaces and punctuation removed: device kinds of JAX (`TPU v5 lite`), accelerator
types of Cloud (`v5litepod-16`) and product names."""

_BY_NAME = {chip.name: chip for chip in CHIPS}
_SEPARATOR = re.compile(r"[\s_\-./]+")
_NOISE_WORD = re.compile(r"google|cloud|nvidia|amd|instinct|sxm\d?|pcie|hbm\d?e?|\d+gb")
_SLICE_WORD = re.compile(r"\d+(?:x\d+)*")


def chip(name: str) -> Chip:
    """The chip of that name: `v5e`, `TPU v5 lite`, `v5litepod-16`, `trillium`, `NVIDIA H100 80GB`.

    Raises:
      SettingsError: no such chip; the message names the nearest ones.
    """
    words = [w for w in _SEPARATOR.split(name.strip().lower()) if not _NOISE_WORD.fullmatch(w)]
    whole = _joined(words)
    without_slice = _joined(words[:-1]) if words and _SLICE_WORD.fullmatch(words[-1]) else whole
    for key in (whole, without_slice):
        found = _BY_NAME.get(_ALIASES.get(key, key))
        if found is not None:
            return found
    near = get_close_matches(whole, [*_BY_NAME, *_ALIASES], n=3, cutoff=0.5)
    nearest = list(dict.fromkeys(_ALIASES.get(n, n) for n in near))
    names = ", ".join(f"`{n}`" for n in nearest or _BY_NAME)
    hint = f"did you mean {names}?" if nearest else f"known chips are {names}"
    raise SettingsError(f"unknown chip `{name}`; {hint}")


def _joined(words: list[str]) -> str:
    joined = "".join(words)
    return joined.removeprefix("tpu") or joined


EVIDENCE_CHARS = 4_000_000
"""How much of a module's text is searched for signs of its backend: every kind of sign recurs
throughout a dump, and a search through hundreds of megabytes would cost more than parsing."""

_TPU_SIGNS = (
    *(f"{before}:T(" for before in "{0123456789"),
    '"window_config":', '"scoped_memory_configs":', '"flag_configs":',
)  # fmt: skip
_GPU_SIGNS = (
    '"operation_queue_id"', '"wait_on_operation_queues"', '"fusion_backend_config"', "kind=kInput",
    "fingerprint_before_lhs=",
    *(
        f'custom_call_target="{target}'
        for target in (
            "__cublas", "__cudnn", "__cusolver", "__cusparse", "__cub$", "__triton",
            "triton_kernel_call", "__nccl", "CuteDSL", "te_",
        )
    ),
)  # fmt: skip
_CPU_SIGNS = (
    '"outer_dimension_partitions"', "__ynn_fusion", "__onednn", "__xla_cpu", "xla_cpu_",
    "to_apply=%parallel_",
    *(f'custom_call_target="{target}' for target in ("__cpu$", "__llvm", "Eigen", "ducc_fft")),
)  # fmt: skip
_NEURON_SIGNS = ('custom_call_target="AwsNeuron',)
_SIGNS: tuple[tuple[Backend, tuple[str, ...]], ...] = (
    ("tpu", _TPU_SIGNS),
    ("neuron", _NEURON_SIGNS),
    ("cpu", _CPU_SIGNS),
    ("gpu", _GPU_SIGNS),
)


def _evidence(module: Module) -> str:
    """The text to search: from the first computation on, below the tables of source places."""
    start = module.computations[0].at if module.computations else 0
    return module.text[start : start + EVIDENCE_CHARS]


def detect_backend(module: Module) -> Backend:
    """Which compiler the module went through, from signs that only that one leaves.

    TPU: tiled layouts and libtpu's `backend_config`. GPU: stream assignments, cuBLAS, cuDNN and
    Triton calls, reduction (`kInput`) fusions. CPU: its partitioning and library calls. Neuron:
    `AwsNeuron*` calls. A module from before optimisation carries none and is `unknown`, as is a
    small one that happens to show no sign.
    """
    text = _evidence(module)
    for backend, signs in _SIGNS:
        if any(sign in text for sign in signs):
            return backend
    return "unknown"


_V4_MEMORY = re.compile(r"T\([\d,]+\)(?:\([\d,]+\))?S\(3\)")
_MEGACORE = '"megacore_config"'


def detect_chip(module: Module) -> Chip | None:
    """The chip a TPU module was compiled for, where the text proves it; otherwise `None`.

    Buffers in `S(3)` are in common memory, which only v4 has. Only v4 and v5p join two cores
    into one device (`megacore_config`), and a v5p dump keeps its on-chip buffers in `S(1)`.
    v5e, v6e and 7x print the same text.
    """
    text = _evidence(module)
    if not any(sign in text for sign in _TPU_SIGNS):
        return None
    if _V4_MEMORY.search(text):
        return as_compiled(_BY_NAME["v4"], module)
    if _MEGACORE in text and "S(1)}" in text:
        return _BY_NAME["v5p"]
    return None


ASSUMED_CHIP = {"tpu": "v5e", "gpu": "h100"}
"""The chip whose figures are used where neither the dump nor the user names one, by backend."""


def choose_chip(module: Module, name: str | None) -> tuple[Chip | None, bool]:
    """The chip to model, and whether it is assumed: neither named by the user nor by the dump.

    Args:
      module: what was compiled.
      name: the chip that the user names.

    Raises:
      InputError: there is no chip of that name.
    """
    if name:
        return chip(name), False
    detected = detect_chip(module)
    if detected is not None:
        return detected, False
    assumed = ASSUMED_CHIP.get(detect_backend(module))
    return (chip(assumed), True) if assumed else (None, False)


def as_compiled(chip: Chip, module: Module) -> Chip:
    """The chip as the module sees it: a single core where it was not compiled for joined ones.

    libtpu gives each larger fusion of a joined pair a `megacore_config`; a scheduled TPU module
    with cycle estimates and without any was compiled for one core a device.
    """
    if chip.cores == 1:
        return chip
    text = _evidence(module)
    joined = _MEGACORE in text or '"estimated_cycles"' not in text
    return chip if joined else chip.single_core

"""The chips, their names, and what a dump tells of the one it is for."""

import gzip
from dataclasses import fields
from pathlib import Path

import pytest

from hlo_tools.errors import SettingsError
from hlo_tools.hardware import CHIPS, Chip, as_compiled, chip, detect_backend, detect_chip
from hlo_tools.hlo.module import Module
from hlo_tools.hlo.parser import parse_module

NAMES = {
    "v3": ["v3", "TPU v3", "v3-8"],
    "v4": ["v4", "TPU v4", "v4-8"],
    "v5e": ["v5e", "TPU v5e", "TPU v5 lite", "v5litepod", "v5litepod-16", "V5E-4"],
    "v5p": ["v5p", "TPU v5", "TPU v5p", "v5p-128"],
    "v6e": ["v6e", "TPU v6 lite", "v6e-8", "trillium", "Trillium"],
    "7x": ["7x", "tpu7x", "TPU7x", "v7x", "ironwood", "TPU 7"],
    "a100": ["a100", "NVIDIA A100-SXM4-80GB"],
    "h100": ["h100", "NVIDIA H100 80GB HBM3"],
    "h200": ["H200"],
    "b200": ["b200", "GB200"],
    "mi300x": ["MI300X", "AMD Instinct MI300"],
}


@pytest.mark.parametrize(
    ("name", "alias"), [(n, a) for n, aliases in NAMES.items() for a in aliases]
)
def test_every_usual_name_of_a_chip_finds_it(name: str, alias: str) -> None:
    assert chip(alias).name == name


def test_every_chip_has_a_tested_name() -> None:
    assert {c.name for c in CHIPS} == NAMES.keys()


def test_an_unknown_chip_is_refused_with_the_nearest_names() -> None:
    with pytest.raises(SettingsError, match=r"unknown chip `v6`.*`v6e`"):
        chip("v6")
    with pytest.raises(SettingsError, match=r"known chips are .*`v5e`"):
        chip("")


@pytest.mark.parametrize("device", CHIPS, ids=lambda c: c.name)
def test_figures_have_plausible_proportions(device: Chip) -> None:
    """A slipped digit or a figure per chip among figures per device."""
    assert 1e13 < device.bf16_flops < 1e16
    assert 4e11 < device.hbm_bandwidth < 1e13
    assert 8e9 < device.hbm_bytes < 4e11
    assert 100 < device.bf16_flops / device.hbm_bandwidth < 1000
    for field in fields(device):
        value = getattr(device, field.name)
        assert value is None or isinstance(value, str) or value > 0


@pytest.mark.parametrize(
    "device", [c for c in CHIPS if c.clock_hz and c.mxu_size], ids=lambda c: c.name
)
def test_a_clock_fits_the_peak(device: Chip) -> None:
    """Operations a cycle and core are those of four 128-wide or eight 128-wide-equivalent MXUs."""
    assert device.clock_hz is not None
    assert device.mxu_size is not None
    a_cycle = device.bf16_flops / device.clock_hz / device.cores
    assert a_cycle == pytest.approx(
        8 * device.mxu_size**2 if device.mxu_size == 256 else 131072, rel=0.01
    )


def test_single_core_halves_what_a_pair_shares() -> None:
    whole, half = chip("v5p"), chip("v5p").single_core
    assert (half.cores, half.clock_hz) == (1, whole.clock_hz)
    assert half.bf16_flops == whole.bf16_flops / 2
    assert half.hbm_bandwidth == whole.hbm_bandwidth / 2
    assert chip("v5e").single_core is chip("v5e")


def module(line: str) -> Module:
    return parse_module(f"HloModule m, is_scheduled=true\nENTRY e {{\n  {line}\n}}\n")


@pytest.mark.parametrize(
    ("line", "backend"),
    [
        ("ROOT p = f32[8,128]{1,0:T(8,128)} parameter(0)", "tpu"),
        ("ROOT p = f32[8,128]{1,0} parameter(0)", "unknown"),
        ('ROOT c = f32[8]{0} custom-call(), custom_call_target="__cublas$gemm"', "gpu"),
        ('ROOT c = f32[8]{0} custom-call(), custom_call_target="AwsNeuronGelu"', "neuron"),
        ('ROOT c = f32[8]{0} add(), backend_config={"outer_dimension_partitions":["2"]}', "cpu"),
    ],
)
def test_backend_is_told_by_what_only_that_compiler_prints(line: str, backend: str) -> None:
    assert detect_backend(module(line)) == backend


def test_backend_agrees_with_the_names_of_the_corpus(corpus: Path) -> None:
    """`tpu_`, `gpu_`, `cpu_`, `neuron_` say the truth; dumps with no sign may stay unknown."""
    seen = {}
    for path in sorted([*corpus.glob("hlo/*.txt*"), *corpus.glob("hlo_tpu_aot/*.txt")]):
        data = path.read_bytes()
        text = (gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data).decode()
        found = detect_backend(Module(name=path.name, text=text))
        truth = path.name.partition("_")[0]
        if truth in ("tpu", "gpu", "cpu", "neuron"):
            assert found in (truth, "unknown"), path.name
            seen[path.name] = found
        elif "before_optimization" in path.name:
            assert found == "unknown", path.name
    assert all(found == "tpu" for name, found in seen.items() if name.startswith("tpu"))
    assert sum(found == "gpu" for found in seen.values()) >= 40


def test_chip_is_told_only_where_the_text_proves_it(corpus: Path) -> None:
    """v4 by its common memory, v5p by joined cores; the others print alike."""
    expected = {"v4": ("v4", 1), "v5p": ("v5p", 2), "v5e1": None, "v5e8": None, "v6e": None}
    for path in corpus.glob("hlo_tpu_aot/tpu_aot_*.txt"):
        found = detect_chip(Module(name=path.name, text=path.read_text()))
        told = (found.name, found.cores) if found else None
        assert told == expected[path.name.split("_")[2]], path.name


def test_a_module_for_single_cores_gets_half_a_chip() -> None:
    line = 'ROOT c = f32[8]{0:T(128)} copy(), backend_config={"estimated_cycles":"9"%s}'
    assert as_compiled(chip("v4"), module(line % "")).cores == 1
    assert as_compiled(chip("v4"), module(line % ',"megacore_config":{}')).cores == 2
    assert as_compiled(chip("v6e"), module(line % "")) is chip("v6e")

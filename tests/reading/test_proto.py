"""HLO protos are known by content and read through jaxlib, which may be missing or refuse."""

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from inputs import message, modules, read

from hlo_tools.io import Limits, ModuleText, read_inputs
from hlo_tools.reading.proto import holds_module

# Writes a dump folder and beside it what the compiled program prints of itself.
CPU_PROGRAM = """
import jax, jax.numpy as jnp, sys
f = jax.jit(lambda x: jnp.tanh(x @ x).sum())
g = jax.jit(lambda x: jnp.sort(x)[::-1])
f.lower(jnp.ones((8, 8))).compile()
g.lower(jnp.ones(8)).compile()
"""
TPU_PROGRAM = """
import jax, jax.numpy as jnp, numpy as np, pathlib, sys
from jax.experimental import topologies
from jax.sharding import Mesh, NamedSharding, PartitionSpec
topology = topologies.get_topology_desc(platform="tpu", topology_name="v5e:2x2")
mesh = Mesh(np.array(topology.devices).reshape(4), ("x",))
x = jax.ShapeDtypeStruct(
    (64, 256), jnp.bfloat16, sharding=NamedSharding(mesh, PartitionSpec("x"))
)
compiled = jax.jit(lambda x: (x * 2).sum()).lower(x).compile()
pathlib.Path(sys.argv[1]).write_text(compiled.as_text())
"""


def run_dumping(program: str, folder: Path) -> subprocess.CompletedProcess[bytes]:
    environment = {
        **os.environ,
        "JAX_PLATFORMS": "cpu",
        "TPU_SKIP_MDS_QUERY": "1",
        "TPU_ACCELERATOR_TYPE": "v5litepod-4",
        "TPU_WORKER_HOSTNAMES": "localhost",
        "ALLOW_MULTIPLE_LIBTPU_LOAD": "1",
        "XLA_FLAGS": f"--xla_dump_to={folder} --xla_dump_hlo_as_text --xla_dump_hlo_as_proto "
        "--xla_dump_hlo_pass_re=.*fusion.*",
    }
    return subprocess.run(
        [sys.executable, "-c", program, str(folder.parent / "as_text.txt")],
        env=environment,
        capture_output=True,
        check=True,
        timeout=300,
    )


@pytest.fixture(scope="module")
def cpu_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("jax")
    folder = tmp_path_factory.mktemp("cpu") / "dump"
    run_dumping(CPU_PROGRAM, folder)
    return folder


@pytest.fixture(scope="module")
def tpu_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("jax")
    pytest.importorskip("libtpu")
    folder = tmp_path_factory.mktemp("tpu") / "dump"
    run_dumping(TPU_PROGRAM, folder)
    return folder


def computations(text: str) -> list[str]:
    """What is printed below the source tables, which are numbered anew each time.

    Of each line the characters are sorted: protos do not keep the order of maps.
    """
    below = re.sub(r"stack_frame_id=\d+", "", text[text.index("\n%") :])
    return ["".join(sorted(line)) for line in below.split("\n")]


def test_a_real_cpu_dump_folder_gives_each_module_once(cpu_folder: Path) -> None:
    items = list(read_inputs([str(cpu_folder)]))
    files = [Path(str(item.path)).name for item in items]
    assert all(name.endswith(".cpu_after_optimizations.txt") for name in files)
    assert len(files) == len(list(cpu_folder.glob("*.cpu_after_optimizations.txt"))) >= 2
    assert len(list(cpu_folder.iterdir())) > 10 * len(files)


def test_a_real_tpu_dump_folder_gives_what_the_compiled_program_prints(tpu_folder: Path) -> None:
    ((_, text),) = modules(list(read_inputs([str(tpu_folder)])))
    printed = (tpu_folder.parent / "as_text.txt").read_text()
    assert computations(text) == computations(printed)


def test_every_file_of_a_real_dump_is_a_module_or_told_for_what_it_is(tpu_folder: Path) -> None:
    for file in sorted(tpu_folder.iterdir()):
        if file.suffix == ".pb" or file.is_dir():
            continue
        (item,) = read_inputs([str(file)])
        if isinstance(item, ModuleText):
            assert item.text == file.read_text()
            assert "before_" in file.name or "after_" in file.name
        else:
            assert ", not HLO; give `" in item.message, file.name


def test_a_proto_gives_the_text_that_stands_beside_it(tpu_folder: Path) -> None:
    """Source tables, layouts and cycle estimates are in it, and the number of partitions."""
    (file,) = tpu_folder.glob("*.after_codegen.hlo.pb")
    ((_, text),) = modules(list(read_inputs([str(file)])))
    beside = Path(str(file).replace(".hlo.pb", ".txt")).read_text()
    assert computations(text) == computations(beside)
    assert text.startswith("HloModule jit__lambda, num_partitions=4, is_scheduled=true, ")
    for part in ("FileNames", "stack_frame_id=", "T(8,128)", "estimated_cycles"):
        assert part in text


def field(number: int, payload: bytes) -> bytes:
    """One length-delimited field of a protocol buffer."""
    length, size = len(payload), b""
    while True:
        size += bytes([length & 0x7F | (0x80 if length > 0x7F else 0)])
        length >>= 7
        if not length:
            return bytes([number << 3 | 2]) + size + payload


@pytest.fixture(scope="module")
def packed(cpu_folder: Path) -> bytes:
    """An `HloProto` as XLA writes it."""
    return min(cpu_folder.glob("*.cpu_after_optimizations.hlo.pb")).read_bytes()


@pytest.fixture(scope="module")
def bare(packed: bytes) -> bytes:
    """The module in it."""
    length = at = 0
    while True:
        byte = packed[1 + at]
        length |= (byte & 0x7F) << 7 * at
        at += 1
        if byte < 0x80:
            return packed[1 + at : 1 + at + length]


def test_wrapped_and_bare_modules_are_one(packed: bytes, bare: bytes) -> None:
    assert packed.startswith(field(1, bare))
    expected = modules(read(packed))
    assert modules(read(bare)) == expected
    assert modules(read(field(1, bare) + field(2, b""))) == expected
    assert modules(read(field(1, packed) + field(2, b""))) == expected


def test_a_cut_off_proto_is_told(bare: bytes) -> None:
    assert message(read(bare[: len(bare) // 2])).startswith(
        "this is an HLO proto that jaxlib cannot read: "
    )


def test_without_jaxlib_the_extra_is_named(bare: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    find_spec = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "jaxlib" else find_spec(name)
    )
    assert "`pip install 'hlo-tools[aot]'`" in message(read(bare))


def test_nothing_in_the_working_directory_is_imported(
    bare: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "jaxlib.py").write_text("raise SystemExit('imported')\n")
    monkeypatch.chdir(tmp_path)
    assert modules(read(bare))


def test_a_proto_that_takes_too_long_is_given_up(bare: bytes) -> None:
    found = message(read(bare, limits=Limits(proto_seconds=0.001)))
    assert found == "this is an HLO proto that jaxlib did not print within 0.001 s"


@settings(max_examples=8)
@given(data=st.data())
def test_a_damaged_proto_never_raises(bare: bytes, data: st.DataObject) -> None:
    damaged = bytearray(bare)
    for _ in range(3):
        at = data.draw(st.integers(0, len(bare) - 1))
        damaged[at] = data.draw(st.integers(0, 255))
    assert read(bytes(damaged))


@given(st.binary(max_size=300))
def test_recognising_never_raises(data: bytes) -> None:
    assert not holds_module(b"\x0a\x05a\tb" + data)


def test_every_beginning_of_a_proto_that_shows_an_instruction_is_known(packed: bytes) -> None:
    known = [holds_module(packed[:end]) for end in range(len(packed))]
    assert known == sorted(known)
    assert sum(known) > len(packed) // 2

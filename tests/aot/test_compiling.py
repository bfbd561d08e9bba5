"""`hlo-lint --aot` with the real compiler: what it compiles, what it says, and where it points."""

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from aot_oracle import AVAILABLE
from hlo_tools.aot import compiling
from hlo_tools.cli import main

pytestmark = pytest.mark.skipif(not AVAILABLE, reason="needs jax and libtpu")

ROOT = Path(__file__).resolve().parents[2]

PROGRAMS = {
    # Donation and static arguments of its own, shardings over the mesh of the topology.
    "sharded.py": """
import functools
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P

print("what a program prints is no part of the report")


@functools.partial(jax.jit, donate_argnames="params", static_argnames="rate")
def step(params, x, rate):
    def loss(params):
        return jnp.sum(jnp.tanh(jnp.dot(x, params, precision="highest")))

    return params - rate * jax.grad(loss)(params)


def hlo_lint_example(devices):
    mesh = Mesh(np.array(devices).reshape(4, 4), ("fsdp", "tp"))

    def array(*shape, spec):
        sharding = NamedSharding(mesh, P(*spec))
        return jax.ShapeDtypeStruct(shape, jnp.float32, sharding=sharding)

    return {
        "params": array(8192, 8192, spec=("fsdp", "tp")),
        "x": array(4096, 8192, spec=("fsdp", None)),
        "rate": 0.1,
    }
""",
    # Made for the mesh: shardings of its own, over the devices that only the example knows.
    "meshed.py": """
import functools
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P


def make_scale(mesh):
    rows, columns = NamedSharding(mesh, P("all")), NamedSharding(mesh, P(None, "all"))
    return jax.jit(lambda x: 2 * x, in_shardings=rows, out_shardings=columns)


def hlo_lint_example(devices):
    mesh = Mesh(np.array(devices), ("all",))
    x = jax.ShapeDtypeStruct((4096, 2048), jnp.float32)
    return functools.partial(make_scale(mesh), x)
""",
    # A plain function; an array stands for its type, a string is static; a Pallas kernel in it.
    "plain.py": """
import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl


def double(x_ref, out_ref):
    out_ref[...] = 2 * x_ref[...]


def layer(x, kind):
    if kind == "double":
        x = pl.pallas_call(double, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype))(x)
    return x + jnp.ones((), x.dtype)


def hlo_lint_example():
    return jnp.zeros((256, 256), jnp.float32), "double"
""",
    "large.py": """
import jax
import jax.numpy as jnp


def square(x):
    return x @ x.T


def hlo_lint_example():
    return jax.ShapeDtypeStruct((60_000, 60_000), jnp.float32),
""",
    "wrong.py": """
import jax
import jax.numpy as jnp


def product(x):
    return x @ jnp.ones((3, 4))


def hlo_lint_example():
    return jax.ShapeDtypeStruct((8, 8), jnp.float32),
""",
    "crash.py": """
import os

os.abort()
""",
}


@dataclass(frozen=True)
class Run:
    """What one run over all programs gave."""

    folder: Path
    status: int
    report: dict[str, Any]

    def module(self, name: str) -> dict[str, Any]:
        """The module of a program."""
        (found,) = [m for m in self.report["modules"] if f"/{name}-" in m["path"]]
        return found

    def dump(self, name: str) -> str:
        """The text of a program."""
        return (self.folder / self.module(name)["path"]).read_text()


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("aot")
    for name, text in PROGRAMS.items():
        (folder / name).write_text(text)
    targets = (
        "sharded:step",
        "meshed:make_scale",
        "plain:layer",
        "large:square",
        "wrong:product",
        "crash:f",
    )
    arguments = ["--format", "json", "-o", str(folder / "report.json")]
    for target in targets:
        file, _, function = target.partition(":")
        arguments += ["--aot", f"{folder / file}.py:{function}"]
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        status = main([*arguments, "--topology", "v5e:4x4", "--keep", "kept", "--show-notes"])
    report = json.loads((folder / "report.json").read_text())
    return Run(folder=folder, status=status, report=report)


def test_what_does_not_compile_stops_none_of_the_others(run: Run) -> None:
    """Each that compiles is linted, in the order given, and the status says that some did not."""
    assert run.status == 2
    names = [module["name"] for module in run.report["modules"]]
    assert names == ["jit_step", "jit__lambda", "jit_layer", "jit_square"]
    assert len(run.report["problems"]) == 2


def test_it_is_linted_for_the_chip_of_the_topology(run: Run) -> None:
    assert {(m["chip"], m["chip_assumed"]) for m in run.report["modules"]} == {("v5e", False)}


def test_donation_and_shardings_are_the_programs_own(run: Run) -> None:
    assert run.module("sharded.step")["partitions"] == 16
    header = run.dump("sharded.step").split("\n", 1)[0]
    assert "input_output_alias={ {}: (0, {}, may-alias) }" in header
    assert "f32[2048,2048]" in header  # a quarter of each dimension


def test_shardings_over_a_mesh_of_the_example_are_kept(run: Run) -> None:
    """Rows come in and columns go out, a sixteenth of them on each device."""
    header = run.dump("meshed.make_scale").split("\n", 1)[0]
    assert re.search(r"layout=\{\(f32\[256,2048\]\S*\)->f32\[4096,128\]", header)


def test_a_plain_function_is_jitted_and_a_kernel_compiled(run: Run) -> None:
    assert '"tpu_custom_call"' in run.dump("plain.layer")
    assert "f32[256,256]" in run.dump("plain.layer").split("\n", 1)[0]


def test_findings_point_at_the_persons_own_lines(run: Run) -> None:
    """And no frame of ours is among what is blamed."""
    lines = PROGRAMS["sharded.py"].split("\n")
    found = [f for f in run.report["findings"] if f["module"] == "jit_step" and f["source"]]
    assert found
    for finding in found:
        assert finding["source"]["file"] == str(run.folder / "sharded.py")
        assert "params" in lines[finding["source"]["line"] - 1]


def test_running_out_of_memory_is_a_finding_with_the_compilers_figures(run: Run) -> None:
    (finding,) = [f for f in run.report["findings"] if f["rule"] == "out-of-memory"]
    assert finding["severity"] == "error"
    assert finding["module"] == "jit_square"
    assert PROGRAMS["large.py"].split("\n")[finding["source"]["line"] - 1] == "    return x @ x.T"
    said = re.search(r"needs ([\d.]+) GB of device memory", finding["message"])
    (usage,) = (run.folder / "kept" / "large.square-v5e_4x4").glob("*-memory-usage-report.txt")
    total = re.search(r"\(color=0\)\nTotal bytes: (\d+)", usage.read_text())
    assert said and total
    assert float(said[1]) == pytest.approx(int(total[1]) / 1e9, rel=0.01)
    assert {r["message"].partition(" `")[0] for r in finding["related"]} <= {
        "the argument", "the output", "the temporary",
    }  # fmt: skip


def test_an_error_of_the_program_is_told_at_its_line(run: Run) -> None:
    told = run.report["problems"][0]
    assert (told["path"], told["line"]) == ("wrong.py", 7)
    assert told["message"].startswith("`product` does not compile for v5e:4x4: TypeError: dot_gen")


def test_a_process_that_dies_is_said_to_have_died(run: Run) -> None:
    told = run.report["problems"][1]["message"]
    assert "crash.py:f@v5e:4x4`: the compiler's process ended of SIGABRT" in told


def test_a_topology_that_libtpu_does_not_know(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "plain.py").write_text(PROGRAMS["plain.py"])
    status = main(["--aot", f"{tmp_path / 'plain.py'}:layer", "--topology", "v5e:3x3"])
    assert status == 2
    assert "libtpu has no topology `v5e:3x3`" in capsys.readouterr().out


def test_a_compile_ends_with_the_command_that_started_it(tmp_path: Path) -> None:
    """However that ends: an orphan would hold a processor for minutes."""
    pid_file = tmp_path / "pid"
    (tmp_path / "slow.py").write_text(
        f"import os, pathlib, time\npathlib.Path({str(pid_file)!r}).write_text(str(os.getpid()))\n"
        "time.sleep(600)\n"
    )
    command = subprocess.Popen(
        [sys.executable, "-m", "hlo_tools", "--aot", "slow.py:f", "--topology", "v5e:2x2"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    with command:
        _wait(lambda: pid_file.is_file() and pid_file.read_text() != "")
        command.kill()
    worker = int(pid_file.read_text())
    _wait(lambda: not _runs(worker))


def _wait(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)


def _runs(pid: int) -> bool:
    """Whether a process is there and is not one that only waits to be asked how it ended."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return False
    return status.rpartition(")")[2].split()[0] != "Z"


def test_a_function_of_a_library_is_blamed_in_the_library(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where no line of the person's is in between, and never at the line that compiles it."""
    (tmp_path / "site-packages").mkdir()
    (tmp_path / "site-packages" / "library.py").write_text(
        'import jax.numpy as jnp\n\ndef dot(x):\n    return jnp.dot(x, x, precision="highest")\n'
    )
    target = f"{tmp_path / 'site-packages' / 'library.py'}:dot"
    (tmp_path / "example.py").write_text(
        "import jax\n\ndef arguments():\n"
        "    return jax.ShapeDtypeStruct((2048, 2048), 'float32'),\n"
    )
    example = f"{tmp_path / 'example.py'}:arguments"
    status = main(["--aot", target, "--args", example, "--topology", "v5e:2x2"])
    assert status == 1
    assert "library.py:4:12: error HLO601" in capsys.readouterr().out


@pytest.mark.skipif(not find_spec("flax"), reason="needs flax")
def test_modules_of_flax_compile(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An NNX module under its own jit, by its abstract state."""
    (tmp_path / "model.py").write_text(
        "import jax\nfrom flax import nnx\n\n@nnx.jit\ndef apply(model, x):\n"
        "    return model(x)\n\ndef hlo_lint_example():\n"
        "    model = nnx.eval_shape(lambda: nnx.Linear(256, 512, rngs=nnx.Rngs(0)))\n"
        "    return model, jax.ShapeDtypeStruct((64, 256), 'float32')\n"
    )
    assert main(["--aot", f"{tmp_path / 'model.py'}:apply", "--topology", "v5e:2x2"]) == 0
    assert "in 1 module; modelled step" in capsys.readouterr().out


def test_a_sharded_transformer_compiles_and_what_is_found_is_in_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The forward pass of scanned layers on a mesh of two axes; its sizes are a static argument."""
    monkeypatch.chdir(ROOT)
    model = "fixtures/models/transformer.py"
    report = tmp_path / "report.json"
    arguments = ["--args", "small_loss_example", "--topology", "v5e:2x2", "--format", "json"]
    main([*arguments, "--aot", f"{model}:loss", "-o", str(report), "--show-notes"])
    told = json.loads(report.read_text())
    (module,) = told["modules"]
    assert module["partitions"] == 4
    files = {f["source"]["file"] for f in told["findings"] if f["source"]}
    assert files == {str(ROOT / model)}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--aot", "m:f"), "needs a TPU to compile for"),
        (("--aot", "m:f", "--topology", "v5e:2x2", "dump.txt"), "`--aot` takes no PATH"),
        (("--aot", "m:f", "--topology", "v5e:2x2", "--chip", "v5e"), "exclude each other"),
        (("--topology", "v5e:2x2", "dump.txt"), "`--topology` goes with `--aot` only"),
        (("--args", "f", "dump.txt"), "`--args` goes with `--aot` only"),
        (("--keep", "d", "dump.txt"), "`--keep` goes with `--aot` only"),
    ],
)
def test_wrong_usage(
    arguments: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize("absent", ["jax", "libtpu"])
def test_a_missing_compiler_is_said_to_be_missing(
    absent: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(compiling, "find_spec", lambda name: None if name == absent else object())
    assert main(["--aot", "m:f", "--topology", "v5e:2x2"]) == 2
    error = capsys.readouterr().err
    assert f"error: {absent} cannot be found by {sys.executable}" in error
    assert "pip install 'hlo-tools[aot]'" in error

"""What the README shows is what the tools do.

`--update-golden` writes into it what they do now.
"""

import os
import re
import shlex
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from hlo_tools.settings import Overrides, load_settings
from passes.catalog import BY_NAME, RULES

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text()
MAKEFILE = (ROOT / "Makefile").read_text()
KERNEL = ROOT / "fixtures" / "kernels" / "softmax.py"

needs_triton = pytest.mark.skipif(
    not all(find_spec(name) for name in ("triton", "jax", "numpy", "ml_dtypes")),
    reason="what translates kernels is not installed",
)


def block(marker: str) -> str:
    """What stands in the fence below a marker."""
    found = re.search(rf"<!-- {re.escape(marker)} -->\n```\w*\n(.*?)```\n", README, re.DOTALL)
    assert found, marker
    return found[1]


def replace_block(marker: str, text: str) -> None:
    """Writes that text into the fence below a marker."""
    path = ROOT / "README.md"
    head, mark, rest = path.read_text().partition(f"<!-- {marker} -->\n")
    opening, _, rest = rest.partition("\n")
    _, closing, rest = rest.partition("```\n")
    path.write_text(f"{head}{mark}{opening}\n{text}{closing}{rest}")


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT), "JAX_PLATFORMS": "cpu"}


def triton2pallas(*arguments: str, cwd: Path) -> "subprocess.CompletedProcess[str]":
    program = "import sys; from translators.cli import main; sys.exit(main())"
    return subprocess.run(
        [sys.executable, "-c", program, *arguments],
        cwd=cwd,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )


def climbed(report: str) -> list[str]:
    """The lines of a report without what differs from machine to machine.

    How fast one is decides which comparisons there is time for, and the version of XLA by how many
    units in the last place they differ.
    """
    return [
        re.sub(r"^  (passed|skipped)  (.*?)(  .*)?$", r"  ran or not  \2", line)
        for line in report.splitlines()
    ]


def test_the_example_is_the_output_of_the_first_command() -> None:
    """`make demo` prints what the README says it prints."""
    arguments = re.search(r"^DEMO \?= (.*)$", MAKEFILE, re.MULTILINE)
    assert arguments
    run = subprocess.run(
        [sys.executable, "-m", "hlo_tools", "--fail-on", "never", *arguments[1].split()],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert run.stdout == README.split("```\n")[1]


def test_the_table_of_rules_is_the_catalogue() -> None:
    """Every rule is listed, and none that does not exist."""
    listed = re.findall(r"^\| (HLO\d+) \| ([\w-]+) \|", README, re.MULTILINE)
    assert listed == [(rule.id, rule.name) for rule in RULES]


def test_the_configuration_that_it_shows_is_accepted(tmp_path: Path) -> None:
    """Keys, rules and options of the example exist."""
    block = re.search(r"```toml\n(.*?)```", README, re.DOTALL)
    assert block
    (tmp_path / "pyproject.toml").write_text(block[1])
    settings = load_settings(tmp_path / "pyproject.toml", Overrides(), BY_NAME)
    assert settings.ignore == ("HLO501",)
    assert settings.rule_options == {"padding-waste": {"min_waste": 0.5}}
    assert settings.op_ignores[0].rules == ("HLO601",)
    assert [budget.key for budget in settings.budgets] == [
        "peak-hbm", "exposed-collective-share", "collectives.all-gather"
    ]  # fmt: skip


def kernel_of(text: str) -> str:
    """The file up to the end of its kernel, before the JAX that it compares it with."""
    before, mark, rest = text.partition("def softmax_kernel(")
    kernel, end, rest = rest.partition("\n\n\n")
    assert mark and end
    assert "\ndef softmax_kernel_reference(x_ptr):\n" in rest
    assert '\nif __name__ == "__main__":\n' in rest
    return f"{before}{mark}{kernel}\n"


@needs_triton
def test_the_translation_is_the_output_of_the_second_command(update_golden: bool) -> None:
    """`make demo-triton` prints what the README says it prints."""
    arguments = re.search(r"^DEMO_TRITON \?= (.*)$", MAKEFILE, re.MULTILINE)
    assert arguments
    done = triton2pallas(*shlex.split(arguments[1]), cwd=ROOT)
    assert done.returncode == 0, done.stderr
    if update_golden:
        replace_block(f"file: {KERNEL.relative_to(ROOT)}", KERNEL.read_text())
        replace_block("output: translation", kernel_of(done.stdout))
        replace_block("output: report", done.stderr)
        return
    assert block(f"file: {KERNEL.relative_to(ROOT)}") == KERNEL.read_text()
    assert block("output: translation") == kernel_of(done.stdout)
    assert climbed(block("output: report")) == climbed(done.stderr)
    assert "  proved equal\n" in done.stderr
    assert block("output: report").count("  passed ") > 4


@needs_triton
def test_the_commands_that_it_shows_work(tmp_path: Path) -> None:
    """Every one, on the kernel that the README shows."""
    (tmp_path / "kernels.py").write_text(KERNEL.read_text())
    commands = re.findall(r"^    triton2pallas ((?:.*\\\n)*.*)$", README, re.MULTILINE)
    assert len(commands) == 5
    for command in commands:
        arguments = shlex.split(command.replace("\\\n", " "))
        if "--check" not in arguments and "--list" not in arguments:
            arguments.append("--no-verify")  # the demonstration verifies the same
        done = triton2pallas(*arguments, cwd=tmp_path)
        assert done.returncode == 0, done.stdout + done.stderr
    assert "def softmax_kernel(" in (tmp_path / "softmax_tpu.py").read_text()
    assert "stablehlo." in (tmp_path / "softmax.mlir").read_text()


@needs_triton
@pytest.mark.parametrize("marker", ["runs: stablehlo", "runs: triton_call"])
def test_the_programs_that_it_shows_compute_a_softmax(marker: str, tmp_path: Path) -> None:
    (tmp_path / "kernels.py").write_text(KERNEL.read_text())
    if "stablehlo" in marker:
        call = ("--launch", "softmax(f32[64,781])", "--no-verify", "--emit", "stablehlo")
        assert triton2pallas("kernels.py", *call, "-o", "softmax.mlir", cwd=tmp_path).stdout
    program = (
        "import jax, numpy\n"
        "x = jax.random.normal(jax.random.key(0), (64, 781))\n"
        f"{block(marker)}\n"
        "if 'softmax' in globals():\n"
        "    y = softmax(x)\n"
        "    slopes = jax.grad(lambda x: softmax(x)[:, 0].sum())(x)\n"
        "    wanted = jax.grad(lambda x: jax.nn.softmax(x)[:, 0].sum())(x)\n"
        "    assert numpy.allclose(slopes, wanted, atol=1e-6)\n"
        "    assert jax.vmap(softmax)(x[None]).shape == (1, 64, 781)\n"
        "assert numpy.allclose(y, jax.nn.softmax(x), atol=1e-6)\n"
    )
    (tmp_path / "program.py").write_text(program)
    subprocess.run(
        [sys.executable, "program.py"], cwd=tmp_path, env=environment(), check=True, timeout=300
    )


REFUSED = {
    "assembly": (
        "def k(x, y):\n    v = tl.load(x)\n    tl.store(y, tl.inline_asm_elementwise("
        "'shf.l.wrap.b32 $0, $1, $1, 7;', '=r,r', [v], tl.int32, True, 1))\n",
        ("x=i32[1]", "y=i32[1]"),
        "holds assembly whose meaning is not known",
    ),
    "loaded pointer": (
        "def k(p, y):\n    x = tl.load(p).to(tl.pointer_type(tl.float32))\n"
        "    tl.store(y, tl.load(x))\n",
        ("p=i64[1]", "y=f32[1]"),
        "makes a pointer of a number",
    ),
    "other width": (
        "def k(x, y):\n    tl.store(y, tl.load(x.to(tl.pointer_type(tl.int16))))\n",
        ("x=f32[1]", "y=i16[1]"),
        "as elements of another width",
    ),
    "two views": (
        "def k(x, y):\n    tl.store(y, tl.load(x))\n\ndef host(x):\n    k[(1,)](x[1:], x)\n",
        "host(f32[8])",
        "is another view",
    ),
    "loaded stride": (
        "def k(x, y, s):\n"
        "    d = tl.make_tensor_descriptor(x, [32, 32], [tl.load(s), 1], [32, 32])\n"
        "    i = tl.arange(0, 32)\n"
        "    tl.store(y + i[:, None] * 32 + i[None, :], d.load([0, 0]))\n",
        ("x=f32[32,32]", "y=f32[32,32]", "s=i64[1]"),
        "goes through a descriptor that moves by",
    ),
    "large array": (
        "def k(x, y, i):\n    tl.store(y, tl.load(x + tl.load(i)))\n",
        (f"x=i8[{2**31}]", "y=i8[1]", "i=i64[1]"),
        "2**31 elements or more",
    ),
    "type that JAX has not": (
        "def k(x, y):\n    tl.store(y, tl.load(x))\n",
        ("x=fp8e4b15[1]", "y=fp8e4b15[1]"),
        "which JAX has not",
    ),
}


@needs_triton
@pytest.mark.parametrize("name", REFUSED)
def test_what_is_said_to_be_refused_is_refused_at_a_line(name: str, tmp_path: Path) -> None:
    text, launch, reason = REFUSED[name]
    head = "import triton\nimport triton.language as tl\n\n@triton.jit\n"
    (tmp_path / "kernels.py").write_text(head + text)
    how = (
        [f"--launch={launch}"]
        if isinstance(launch, str)
        else ["--kernel=k", "--grid=1", *(f"--arg={each}" for each in launch)]
    )
    done = triton2pallas("kernels.py", *how, "--no-verify", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (1, ""), done.stderr
    assert re.match(r"kernels\.py:\d+:(\d+:)? refused: ", done.stderr)
    assert reason in done.stderr

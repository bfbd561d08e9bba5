"""Options, exit status and start-up: what needs no Triton."""

import subprocess
import sys
from pathlib import Path

import pytest

from hlo_tools import __version__
from translators import cli

ROOT = Path(__file__).parents[2]
HEAVY = {"jax", "jaxlib", "numpy", "triton", "torch", "libtpu"}


def loaded_by(*arguments):
    """The modules that a run of the command loads."""
    program = (
        "import sys, translators.cli\n"
        "status = translators.cli.main(sys.argv[1:])\n"
        "print('\\n', *sys.modules, file=sys.stderr)\n"
        "sys.exit(status)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return set(done.stderr.split("\n")[-2].split())


@pytest.mark.parametrize("option", ["--version", "--help"])
def test_telling_about_itself_loads_neither_jax_nor_triton(option):
    loaded = loaded_by(option)
    assert loaded.isdisjoint(HEAVY)
    assert not {name for name in loaded if name.startswith("translators.triton")}


def test_the_version_is_told(run):
    done = run("--version")
    assert (done.status, done.out) == (0, f"triton2pallas {__version__}\n")


def test_the_help_says_that_the_file_is_run(run):
    done = run("--help")
    words = " ".join(done.out.split())
    assert done.status == 0
    assert "is imported and its functions are run, as by any test runner" in words
    options = "launch kernel arg constexpr grid emit output explain check list config no-verify"
    for option in [*options.split(), "block", "chip", "grad", "format", "seed", "tolerance"]:
        assert f"--{option} " in words


def test_the_help_shows_commands_to_copy(run):
    lines = run("--help").out.splitlines()
    call = "triton2pallas add.py --launch 'add(f32[98432], f32[98432])' -o add_tpu.py"
    assert call in [line.strip() for line in lines]


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        ([], "Missing argument 'PATH'"),
        (["a.py", "b.py"], "unexpected extra argument"),
        (["a.py", "--surprise"], "--surprise"),
        (["a.py", "--emit", "jax", "--block", "rows=8"], "`--emit jax` takes no `--block`"),
        (["a.py", "--block", "rows"], "`--block rows` is not of the form NAME=VALUE"),
        (["a.py", "--block", "rows=0"], "`--block rows=0` is not of the form NAME=VALUE"),
        (["a.py", "--block", "rows=8", "--block", "rows=16"], "`--block rows=...` is given twice"),
        (["a.py", "--chip", "v3"], "v3"),
        (["a.py", "--chip", "v5e", "--no-verify"], "`--no-verify` compiles nothing"),
        (["a.py", "--emit", "cuda"], "cuda"),
        (["a.py", "--format", "xml"], "xml"),
        (["a.py", "--launch", "f()", "--arg", "x=1"], "`--launch` excludes"),
        (["a.py", "--launch", "f()", "--grid", "1"], "`--launch` excludes"),
        (["a.py", "--launch", "f()", "--constexpr", "B=1"], "`--launch` excludes"),
        (["a.py", "--list", "--launch", "f()"], "`--list` takes no launch"),
        (["a.py", "--list", "--grid", "4"], "`--list` takes no launch"),
        (["a.py", "--list", "-o", "b.py"], "`--list` excludes"),
        (["a.py", "--list", "--check"], "`--list` excludes"),
        (["a.py", "--check", "-o", "b.py"], "`--check` writes nothing"),
        (["a.py", "--check", "--no-verify"], "`--no-verify` excludes"),
        (["a.py", "--grad", "--no-verify"], "`--no-verify` excludes"),
        (["a.py", "--grid", "1", "--grid", "2"], "`--grid` is given 2 times"),
        (["a.py", "--config", "-1"], "--config"),
        (["a.py", "--seed", "one"], "--seed"),
        (["a.py", "--tolerance", "2"], "--tolerance"),
        (["a.py", "--tolerance", "nan"], "--tolerance"),
    ],
)
def test_wrong_usage_is_said_in_one_line(run, arguments, part):
    done = run(*arguments)
    assert done.status == 2
    assert done.out == ""
    (line,) = done.err.splitlines()
    assert part in line
    assert line.endswith("see `triton2pallas --help`")


def test_an_interrupt_ends_quietly(run, monkeypatch):
    def interrupted(options):
        raise KeyboardInterrupt

    monkeypatch.setattr(cli, "_check_usage", interrupted)
    done = run("a.py")
    assert (done.status, done.out, done.err.strip()) == (130, "", "interrupted")


def test_a_bug_of_ours_is_called_one(run, monkeypatch):
    def broken(options):
        raise ZeroDivisionError("by zero")

    monkeypatch.setattr(cli, "_check_usage", broken)
    done = run("a.py")
    assert done.status == 2
    assert "ZeroDivisionError: by zero" in done.err
    assert done.err.splitlines()[-1].startswith("internal error: this is a bug in triton2pallas")


@pytest.mark.parametrize(("name", "part"), [("triton", "hlo-tools[triton]"), ("us", "a bug")])
def test_packages_that_are_not_installed_are_named(run, monkeypatch, name, part):
    def missing():
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)

    monkeypatch.setattr(cli, "_prepare_environment", missing)
    done = run("a.py")
    assert (done.status, done.out) == (2, "")
    assert part in done.err.splitlines()[-1]

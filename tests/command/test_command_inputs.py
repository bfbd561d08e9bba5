"""Files and launches that cannot be used: exit status 2, a located reason, and nothing written."""

import json

import pytest

EXPLICIT = {
    "x_ptr": "--arg=x_ptr=f32[100]",
    "y_ptr": "--arg=y_ptr=f32[100]",
    "out_ptr": "--arg=out_ptr=f32[100]",
    "n": "--arg=n=100",
    "BLOCK": "--constexpr=BLOCK=64",
    "grid": "--grid=2",
}


def explicit(**changes):
    """Options of a launch of `vector_add`; a change to `None` leaves one out."""
    options = {**EXPLICIT, **changes}
    return ["--kernel=vector_add", *(each for each in options.values() if each is not None)]


FILES = {
    "is missing": (None, "there is no such file", None),
    "has a syntax error": ("import triton\ndef f(:\n", "SyntaxError", 2),
    "raises": ("x = 1\nraise RuntimeError('no GPU')\n", "RuntimeError: no GPU", 2),
    "imports what is not there": ("import surely_not_there\n", "ModuleNotFoundError", 1),
    "ends the process": ("import sys\nsys.exit(0)\n", "ends the process", None),
    "is no text": ("\0", "error", None),
}


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("launch", [["--list"], ["--launch=f(f32[4])"]], ids=["list", "launch"])
def test_a_file_that_cannot_be_loaded(run, write, tmp_path, name, launch):
    text, part, line = FILES[name]
    path = tmp_path / "broken.py"
    if text is not None:
        write("broken.py", text)
    done = run(path, *launch)
    assert done.status == 2
    assert done.out == ""
    place = f"{path}:{line}: error: " if line else f"{path}: error: "
    first = done.err.splitlines()[0]
    assert part in first or part == "error"
    assert first.startswith(place) or line is None
    told = json.loads(run(path, *launch, "--format=json").out)
    assert told["exit_status"] == 2
    (problem,) = told["problems"]
    assert (problem["path"], problem["line"]) == (str(path), line) or line is None


def test_the_line_that_fails_is_shown(run, write):
    path = write("raising.py", "def f(x):\n    y = x\n    return 1 // 0\n")
    done = run(path, "--launch", "f(f32[4])")
    assert done.status == 2
    reason = "ZeroDivisionError: integer division or modulo by zero"
    assert done.err.splitlines() == [
        f"{path}:3: error: `f(f32[4])` fails: {reason}",
        "  3 | return 1 // 0",
    ]


def test_what_a_file_prints_is_shown_when_it_fails_and_only_then(run, write):
    good = write("printing.py", "import triton\nprint('I did it')\n")
    done = run(good, "--list")
    assert "did it" not in done.out + done.err
    bad = write("printing_and_failing.py", "print('I will fail')\nraise ValueError\n")
    done = run(bad, "--list")
    assert done.out == ""
    assert done.err.splitlines()[:2] == ["the file printed:", "  | I will fail"]
    mistaken = run(good, "--launch=f()")
    assert mistaken.err.splitlines() == [f"{good}: error: there is no function `f`"]


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (["--launch=add"], "is not a call"),
        (["--launch=add(f32[4]"], "is not a call"),
        (["--launch=subtract(f32[4])"], "there is no function `subtract`"),
        (["--launch=add(f37[4], f32[4])"], "`f37` is no element type"),
        (["--launch=add(f32[4])"], "TypeError"),
        (["--launch=nothing(f32[4])"], "launches no kernel"),
        (["--launch=vector_add(f32[4])"], "`vector_add` is a kernel, which `--kernel vector_add`"),
        (["--launch=add(f32[4], f32[4])", "--kernel=softmax"], "launches no kernel `softmax`"),
        (["--launch=tuned(f32[192], f32[192])", "--config=7"], "has 2 configurations"),
        (["--launch=add(f32[4], f32[4])", "--grad=softmax"], "`softmax` is not launched"),
        (["--launch=add(f32[4], f32[4])", "--grad=vector_add"], "besides `vector_add`"),
        (["--launch=__import__('os').system('true')"], "cannot be read from `).system('true'` on"),
        (["--launch=__import__('os')"], "there is no function `__import__`"),
        (["--launch=add([f32[4], relu], f32[4])"], "`relu` is no array such as"),
        (["--kernel=nope"], "found: `vector_add`"),
        (["--kernel=nope", "--grid=4"], "there is no kernel `nope`"),
        (["--arg=x_ptr=f32[4]", "--grid=4"], "no kernel is named"),
        (explicit(x_ptr=None), "is not given `x_ptr`"),
        (explicit(BLOCK=None), "is not given `BLOCK`"),
        (explicit(grid=None), "no grid is given"),
        (explicit(grid="--grid=0"), "is not one to three positive integers"),
        (explicit(grid="--grid=2;3"), "is not one to three positive integers"),
        (explicit(n="--arg=n=f32"), "gives no array"),
        (explicit(n="--arg=n"), "is not of the form `name=value`"),
        (explicit(n="--arg=m=100"), "has no parameter `m`"),
        (explicit(n="--arg=x_ptr=f32[3]"), "is given twice"),
        (explicit(BLOCK="--constexpr=BLOCK"), "is not of the form `name=value`"),
    ],
)
def test_a_launch_that_cannot_be_made(run, kernels, tmp_path, arguments, part):
    file = tmp_path / "out.py"
    done = run(kernels, *arguments, "-o", file)
    assert done.status == 2
    assert done.out == ""
    assert part in done.err
    assert not file.exists()
    told = json.loads(run(kernels, *arguments, "-o", file, "--format=json").out)
    assert told["exit_status"] == 2
    assert part in told["problems"][0]["message"]
    assert told["text"] is None


def test_names_given_become_no_code(run, kernels, tmp_path, monkeypatch):
    """Whatever is in a name, it is looked up and never run."""
    monkeypatch.chdir(tmp_path)
    evil = "__import__('pathlib').Path('ran').touch()"
    for arguments in (
        [f"--launch={evil}"],
        [f"--launch=add({evil})"],
        [f"--launch=add(x={evil}, y=f32[4])"],
        [f"--kernel={evil}", "--grid=1"],
        explicit(n=f"--arg=n={evil}"),
        explicit(BLOCK=f"--constexpr=BLOCK={evil}"),
        explicit(grid=f"--grid={evil}"),
    ):
        assert run(kernels, *arguments).status in (1, 2)
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("target", ["missing/out.py", "."])
def test_a_file_that_cannot_be_written_is_told_before_anything_is_done(
    run, write, tmp_path, target
):
    path = write("kernels_never_loaded.py", "raise RuntimeError('loaded')\n")
    done = run(path, "--launch=f()", "-o", tmp_path / target)
    assert done.status == 2
    assert "directory" in done.err
    assert "loaded" not in done.err


def test_the_file_itself_is_never_overwritten(run, write):
    path = write("precious.py", "x = 1\n")
    done = run(path, "--launch=f()", "-o", path)
    assert done.status == 2
    assert "is the file to translate" in done.err
    assert path.read_text() == "x = 1\n"


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("this is no IR", "cannot be parsed"),
        ("module { }", "0 public functions"),
        ("\xff\xfe", "cannot be parsed"),
    ],
)
def test_a_file_of_triton_ir_that_is_none(run, write, text, part):
    path = write("broken.ttir", text)
    for arguments in (["--list"], ["--arg=x=f32[4]", "--grid=1"]):
        done = run(path, *arguments)
        assert done.status == 2
        assert done.out == ""
        assert part in done.err
        assert done.err.startswith(f"{path}: error: ")


def test_bytes_that_are_no_text_are_no_triton_ir(run, tmp_path):
    path = tmp_path / "bytes.ttir"
    path.write_bytes(b"\xff\xfe\x00module")
    done = run(path, "--list")
    assert done.status == 2
    assert "no text in UTF-8" in done.err
    assert run(tmp_path / "missing.ttir", "--list").status == 2


def test_triton_ir_takes_no_calls(run, write):
    path = write("kernel.ttir", "module {}")
    done = run(path, "--launch=f()")
    assert done.status == 2
    assert "holds Triton IR" in done.err

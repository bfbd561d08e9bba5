"""What the command finds in a file, and says that a launch would need."""

import json

import pytest

from translators.command.launching import Request, tasks
from translators.triton.kernels import find_kernels
from translators.triton.loading import load_file


def listed(run, path, *options):
    done = run(path, "--list", "--format=json", *options)
    told = json.loads(done.out)
    assert told["exit_status"] == done.status == 0
    return {each["name"]: each for each in told["found"]}


def test_every_kernel_is_listed_with_the_line_of_its_definition(run, kernels):
    found = listed(run, kernels)
    assert set(found) == set(find_kernels(load_file(kernels)))
    source = kernels.read_text().splitlines()
    for name, kernel in found.items():
        assert source[kernel["line"] - 1].startswith(f"def {name}(")
    assert [each["line"] for each in found.values()] == sorted(
        each["line"] for each in found.values()
    )


def test_parameters_are_told_apart_as_far_as_the_kernel_shows_them(run, kernels):
    found = listed(run, kernels)
    kinds = {
        name: {each["name"]: each["kind"] for each in kernel["parameters"]}
        for name, kernel in found.items()
    }
    assert kinds["vector_add"] == {
        "x_ptr": "pointer",
        "y_ptr": "pointer",
        "out_ptr": "pointer",
        "n": "unknown",
        "BLOCK": "constexpr",
    }
    typed = {each["name"]: each for each in found["typed"]["parameters"]}
    assert (typed["wide"]["kind"], typed["wide"]["dtype"]) == ("scalar", "i64")
    assert typed["last"]["default"] == "7"


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("vector_add", "add(f32[300], f32[300])"),
        ("softmax", "warmed_softmax(f32[7,100])"),
        ("matmul", "multiply(f32[64,48], f32[48,40])"),
        ("tuned_add", "tuned(f32[192], f32[192])"),
    ],
)
def test_what_is_said_to_be_a_pointer_is_given_an_array(run, kernels, name, call):
    """The oracle is a launch that host code makes."""
    (task,) = tasks(Request(path=kernels, calls=(call,)))
    arrays = {each.name for each in task.launch.arrays}
    said = {
        each["name"]
        for each in listed(run, kernels)[name]["parameters"]
        if each["kind"] == "pointer"
    }
    assert said == arrays


def test_autotuned_constants_need_not_be_given(run, kernels):
    tuned = listed(run, kernels)["tuned_add"]
    assert tuned["configurations"] == 2
    assert {each["name"] for each in tuned["parameters"] if each["chosen"]} == {"BLOCK", "EVEN"}
    assert "--constexpr" not in tuned["needs"]
    assert tuned["launched_by"] == ["tuned(x, y)"]


def test_functions_that_kernels_call_are_told(run, kernels):
    found = listed(run, kernels)
    assert found["relu"]["called_by"] == ["matmul"]
    assert found["matmul"]["called_by"] == []


def test_without_a_launch_the_list_is_printed_and_the_status_says_so(run, kernels):
    done = run(kernels)
    assert done.status == 2
    assert f"{kernels}:12: vector_add(" in done.out
    assert "say how to launch it" in done.err
    only = run(kernels, "--kernel", "softmax")
    assert only.status == 2
    assert "softmax(" in only.out
    assert "vector_add(" not in only.out


def test_a_file_without_kernels_is_listed_as_such(run, write):
    path = write("nothing_in_it.py", "def f(x):\n    return x\n")
    done = run(path, "--list")
    assert (done.status, done.out) == (0, f"{path}: no kernels\n")
    assert run(path).status == 2


def test_methods_that_launch_a_kernel_are_named_as_they_are_called(run, write):
    path = write(
        "with_a_class.py",
        "import triton\nimport triton.language as tl\n\n"
        "@triton.jit\ndef one(out):\n    tl.store(out, 1.0)\n\n"
        "class Function:\n    @staticmethod\n    def forward(x):\n        one[(1,)](x)\n",
    )
    assert listed(run, path)["one"]["launched_by"] == ["Function.forward(x)"]
    done = run(path, "--launch=Function.forward(f32[1])", "--no-verify")
    assert done.status == 0
    assert "def one(" in done.out

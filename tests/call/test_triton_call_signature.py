"""The call is that of `jax_triton.triton_call`: of the one installed, and of those known."""

import ast
import inspect
from importlib.util import find_spec
from pathlib import Path

import pytest

pytest.importorskip("triton.language")

from translators import triton_call

REQUIRED = inspect.Parameter.empty

# The keywords of each release with their defaults; `*args` come first and `**...` last.
RELEASES = {
    "0.2 to 0.3": {
        "kernel": REQUIRED,
        "out_shape": REQUIRED,
        "grid": REQUIRED,
        "name": "",
        "custom_call_target_name": "triton_kernel_call",
        "num_warps": None,
        "num_stages": None,
        "num_ctas": 1,
        "compute_capability": None,
        "enable_fp_fusion": True,
        "input_output_aliases": None,
        "zeroed_outputs": (),
        "debug": False,
        "serialized_metadata": b"",
    },
    "0.4": {
        "kernel": REQUIRED,
        "out_type": None,
        "grid": REQUIRED,
        "name": "",
        "num_warps": None,
        "num_stages": None,
        "num_ctas": None,
        "compute_capability": None,
        "backend_options": None,
        "input_output_aliases": None,
        "zeroed_outputs": (),
        "debug": False,
        "serialized_metadata": b"",
        "cost_estimate": None,
        "has_side_effect": False,
    },
}

# Where our default is written otherwise and means the same.
SAME = {("num_ctas", 1), ("enable_fp_fusion", True)}


def keywords(function):
    """The keywords of a function with their defaults, and the kinds of all its parameters."""
    parameters = inspect.signature(function).parameters.values()
    names = {each.name: each.default for each in parameters if each.kind == each.KEYWORD_ONLY}
    return names, {each.kind for each in parameters}


def written_keywords(package):
    """Those of `triton_call` as written, since the package imports only beside a GPU."""
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in package.glob("*.py")]
    (function,) = (
        node
        for tree in trees
        for node in tree.body
        if isinstance(node, ast.FunctionDef) and node.name == "triton_call"
    )
    pairs = zip(function.args.kwonlyargs, function.args.kw_defaults, strict=True)
    return {
        name.arg: REQUIRED if default is None else ast.literal_eval(default)
        for name, default in pairs
    }


def lacking(wanted):
    """The keywords that are not ours, or that we require and they do not, or default otherwise."""
    ours, _ = keywords(triton_call)
    return {
        name: default
        for name, default in wanted.items()
        if name not in ours
        or (ours[name] is REQUIRED) != (default is REQUIRED and not name.startswith("out_"))
        or (default is not REQUIRED and ours[name] != default and (name, default) not in SAME)
    }


@pytest.mark.parametrize("release", RELEASES)
def test_takes_the_keywords_of_every_release(release):
    assert lacking(RELEASES[release]) == {}


def test_takes_arrays_by_position_and_constants_by_any_name():
    _, kinds = keywords(triton_call)
    assert kinds == {
        inspect.Parameter.VAR_POSITIONAL,
        inspect.Parameter.KEYWORD_ONLY,
        inspect.Parameter.VAR_KEYWORD,
    }


def test_takes_the_keywords_of_the_installed_release():
    found = find_spec("jax_triton")
    if found is None:
        pytest.skip("jax_triton is not installed")
    names = written_keywords(Path(found.submodule_search_locations[0]))
    assert "kernel" in names
    assert lacking(names) == {}

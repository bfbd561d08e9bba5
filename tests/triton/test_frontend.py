import pytest

pytest.importorskip("triton.language")
pytest.importorskip("jaxlib.mlir.ir")

import numpy as np
from launching import KERNELS, constants_of, explicit

from hlo_tools.errors import InputError
from translators.graph.graph import walk
from translators.triton.binding import bind
from translators.triton.driver import stand_in_driver
from translators.triton.frontend import triton_ir
from translators.triton.host_arrays import HostArray
from translators.triton.kernel_graph import kernel_graph, kernel_parameters
from translators.triton.kernels import find_kernel, find_kernels
from translators.triton.launch_text import parse_argument, parse_constant
from translators.triton.launches import LaunchError
from translators.triton.loading import load_file

ADD = (["x_ptr=f32[64]", "y_ptr=f32[64]", "out_ptr=f32[64]", "n=60"], ["BLOCK=64"], "1")


def test_every_op_has_the_line_of_the_kernel_that_it_comes_from():
    """Constants, which Triton itself shares between lines, are the exception."""
    kernel, launch = explicit("vector_add", *ADD)
    source = KERNELS.read_text().splitlines()
    for op in walk(kernel_graph(kernel, launch).kernel.body):
        if op.name != "arith.constant":
            assert op.location.file == str(KERNELS)
            assert op.location.text == source[op.location.line - 1].strip()
        if op.name == "tt.store":
            assert op.location.text.startswith("tl.store(out_ptr")


def test_library_functions_stay_calls_unless_told_otherwise():
    kernel, launch = explicit("sort_rows", ["x_ptr=f32[16]", "out_ptr=f32[16]"], ["BLOCK=16"], "1")
    assert "tt.call @triton.language.standard.sort_impl" in triton_ir(kernel, launch)
    assert "tt.call" not in triton_ir(kernel, launch, library_calls=())


def test_an_op_without_syntax_in_jaxlib_gets_through():
    kernel, launch = explicit(
        "concatenate", ["x_ptr=f32[16]", "y_ptr=f32[16]", "out_ptr=f32[32]"], ["BLOCK=16"], "1"
    )
    assert "tt.cat" in {op.name for op in walk(kernel_graph(kernel, launch).kernel.body)}


def test_what_tritons_front_end_refuses_is_said_at_the_kernels_line():
    kernel, launch = explicit("first_of", ["pair_ptr=f32[2]", "out_ptr=f32[1]"], [], "1")
    with pytest.raises(InputError, match="undefined_name") as caught:
        triton_ir(kernel, launch)
    source = KERNELS.read_text().splitlines()
    assert caught.value.path == str(KERNELS)
    assert "undefined_name" in source[caught.value.line - 1]


def test_a_gluon_kernel_is_refused_at_its_line(tmp_path):
    path = tmp_path / "gluon_program.py"
    path.write_text(
        "from triton.experimental import gluon\n\n@gluon.jit\ndef fill(out_ptr):\n    pass\n",
        encoding="utf-8",
    )
    kernel = find_kernel(load_file(path), "fill")
    launch = bind(kernel, [parse_argument("out_ptr=f32[4]", buffer=0)], grid=(1, 1, 1))
    with pytest.raises(InputError, match="Gluon") as caught:
        triton_ir(kernel, launch)
    assert (caught.value.path, caught.value.line) == (str(path), 4)


def test_the_graphs_parameters_are_the_arguments_that_are_no_constants():
    kernel, launch = explicit("vector_add", *ADD)
    graph = kernel_graph(kernel, launch)
    names = [each.name for each in kernel_parameters(launch)]
    assert names == ["x_ptr", "y_ptr", "out_ptr", "n"]
    assert [each.name for each in graph.kernel.arguments] == names


def test_kernels_are_found_inside_autotuners_and_heuristics():
    module = load_file(KERNELS)
    found = find_kernels(module)
    assert {"vector_add", "matmul", "relu", "tuned_add"} <= set(found)
    assert found["tuned_add"].fn.__name__ == "tuned_add"
    with pytest.raises(LaunchError, match=r"no kernel `subtract`; found: .*`vector_add`"):
        find_kernel(module, "subtract")


def test_parameters_take_their_arguments_as_tritons_own_binder_does():
    """Against the binder itself: types, constants and defaults are the same."""
    given = ["out_ptr=i64[2]", "free=1", "wide=1", "small=2", "one=1"]
    kernel, launch = explicit("typed", given, [], "1")
    arrays = [HostArray(np.zeros(2, np.int64))]
    with stand_in_driver():
        *_, binder = kernel.create_binder()
        _, specialization, _ = binder(*arrays, 1, 1, 2, 1)
    assert list(launch.signature.values()) == [type_ for type_, *_ in specialization]
    assert constants_of(launch) == {"one": 1}
    assert kernel_graph(kernel, launch).kernel.arguments[-1].name == "last"


@pytest.mark.parametrize(
    ("arguments", "constants", "part"),
    [
        (["x_ptr=f32[4]", "y_ptr=f32[4]", "n=4"], ["BLOCK=4"], "is not given `out_ptr`"),
        ([*ADD[0], "m=4"], ["BLOCK=4"], "no parameter `m`"),
        ([*ADD[0], "BLOCK=f32[4]"], [], "`BLOCK` is a constexpr and is given an array"),
    ],
)
def test_arguments_that_do_not_fit_are_said_at_the_kernels_line(arguments, constants, part):
    kernel = find_kernel(load_file(KERNELS), "vector_add")
    parsed = [parse_argument(text, buffer=0) for text in arguments]
    parsed += [parse_constant(text) for text in constants]
    with pytest.raises(LaunchError, match=part) as caught:
        bind(kernel, parsed, grid=(1, 1, 1))
    assert caught.value.path == str(KERNELS)
    assert caught.value.line == kernel.def_file_line_number

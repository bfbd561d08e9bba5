"""Loops that carry more than sums come to the same where each iteration is a step of the grid."""

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("triton.language")
pytest.importorskip("jaxlib.mlir.ir")

from emitted_kernels import compiler, problems
from launch_case import Case, evaluated, launched
from pallas_case import assert_same

from translators.access.extents import most_iterations
from translators.graph.errors import GraphError
from translators.translation import translate
from translators.triton.binding import bind
from translators.triton.kernels import find_kernel
from translators.triton.launch_text import parse_argument, parse_constant
from translators.triton.launches import grid_of_three
from translators.triton.loading import load_file

FILE = Path(__file__).with_name("carrying_kernels.py")


def floats(*shape):
    return np.random.default_rng(shape).standard_normal(shape).astype(np.float32)


def attention(causal, length=256, block_m=64, block_n=32):
    shape = (2, length, 64)
    return Case(
        name=f"attention over {length}{', causal' if causal else ''}",
        file=FILE,
        kernel="attention",
        arrays={"q_ptr": floats(*shape) / 8, "k_ptr": floats(*shape), "v_ptr": floats(*shape)}
        | {"out_ptr": np.zeros(shape, np.float32)},
        scalars={"LENGTH": length},
        constants={"WIDTH": 64, "BLOCK_M": block_m, "BLOCK_N": block_n, "CAUSAL": causal},
        grid=(length // block_m, 2),
    )


def recurrent(heads=2, length=64, width=32, chunk=16):
    shape = (heads, length, width)
    return Case(
        name=f"a state of {width}x{width} over {length // chunk} chunks",
        file=FILE,
        kernel="recurrent",
        arrays={"q_ptr": floats(*shape) / 8, "k_ptr": floats(*shape) / 8, "v_ptr": floats(*shape)}
        | {"decay_ptr": floats(heads) / 4, "out_ptr": np.zeros(shape, np.float32)}
        | {"state_ptr": floats(heads, width, width)},
        scalars={"LENGTH": length},
        constants={"WIDTH": width, "CHUNK": chunk},
        grid=(heads,),
    )


def of_lengths(lengths=(100, 0, 128, 1), longest=128, width=32, block=32):
    shape = (len(lengths), longest, width)
    return Case(
        name=f"sequences of {', '.join(map(str, lengths))}",
        file=FILE,
        kernel="of_lengths",
        arrays={"q_ptr": floats(len(lengths), 8, width), "k_ptr": floats(*shape)}
        | {"length_ptr": np.array(lengths, np.int32)}
        | {"out_ptr": np.zeros((len(lengths), 8, width), np.float32)},
        scalars={"LONGEST": longest},
        constants={"WIDTH": width, "BLOCK": block},
        grid=(len(lengths),),
    )


def paged(lengths=(50, 3, 64), heads=2, pages=12, page=16, table=4, width=32):
    rng = np.random.default_rng(0)
    sequences = len(lengths)
    tables = rng.permutation(pages)[: sequences * table].reshape(sequences, table)
    return Case(
        name=f"pages of {page}",
        file=FILE,
        kernel="paged",
        arrays={"q_ptr": floats(sequences, heads * 8, width)}
        | {"k_ptr": floats(heads, pages, page, width), "v_ptr": floats(pages, heads, page, width)}
        | {"length_ptr": np.array(lengths, np.int32), "page_ptr": tables.astype(np.int32)}
        | {"out_ptr": np.zeros((sequences, heads * 8, width), np.float32)},
        scalars={"HEADS": heads, "PAGES": pages, "TABLE": table},
        constants={"GROUP": 8, "WIDTH": width, "PAGE": page},
        grid=(sequences, heads),
    )


CASES = [
    (attention(causal=False), {"start": 1}),
    (attention(causal=True), {"start": 1}),
    (attention(causal=True), {"start": 2}),
    (recurrent(), {"chunk": 1}),
    (recurrent(), {"chunk": 2}),
    (of_lengths(), {"start": 1}),
    (of_lengths(), {"start": 2}),
    (paged(), {"index": 1}),
    (paged(), {"index": 2}),
]


def title(each):
    return f"{each[0]}, {each[1]}"


@pytest.mark.parametrize("each", CASES, ids=title)
def test_iterations_are_steps(each):
    from jax.experimental.pallas import tpu as pltpu

    case, lengths = each
    translation = translate(*launched(case), "pallas", lengths)
    source = translation.function.source
    assert "scratch_shapes=" in source
    assert '"arbitrary"), vmem_limit_bytes' in source
    expected = evaluated(case)
    assert_same(case, translation, expected, 1e-5, 1e-5)
    # Memory holds NaN at first here: what is carried begins as is written, not found.
    assert_same(case, translation, expected, 1e-5, 1e-5, interpret=pltpu.InterpretParams())


@pytest.mark.parametrize("each", CASES, ids=title)
def test_steps_compile(each):
    case, lengths = each
    function = translate(*launched(case), "pallas", lengths).function
    arrays = {name: case.arrays[name] for name in function.parameters}
    with compiler() as process:
        assert not problems(process, function, arrays)


def long_attention(length, causal):
    """The text for attention over keys of one head."""
    kernel = find_kernel(load_file(FILE), "attention")
    arrays = {f"{name}_ptr": f"fp32[2,{length},128]" for name in ("q", "k", "v", "out")}
    given = {**arrays, "LENGTH": length}
    arguments = [
        parse_argument(f"{name}={value}", buffer=index)
        for index, (name, value) in enumerate(given.items())
    ]
    constants = {"WIDTH": 128, "BLOCK_M": 256, "BLOCK_N": 256, "CAUSAL": causal}
    arguments += [parse_constant(f"{name}={value}") for name, value in constants.items()]
    launch = bind(kernel, arguments, grid=grid_of_three((length // 256, 2)))
    return translate(kernel, launch, "pallas").function.source


def test_only_what_has_no_room_is_divided():
    """Keys that fit are gone through by a loop in the kernel."""
    assert "scratch_shapes" not in long_attention(1024, causal=False)
    source = long_attention(1 << 15, causal=True)
    assert "pltpu.VMEM((256, 128), jnp.float32)" in source
    assert "(None, 1024, 128),\n" in source
    assert "jnp.minimum(start, block // 4)" in source
    assert 'dimension_semantics=("parallel", "parallel", "arbitrary")' in source


def test_steps_without_iterations_fetch_nothing():
    """They keep the block of the last iteration that there is."""
    case = attention(causal=True)
    source = translate(*launched(case), "pallas", {"start": 1}).function.source
    assert "jnp.minimum(start, block * 2 + 1)" in source
    source = translate(*launched(paged()), "pallas", {"index": 1}).function.source
    assert "page_ref[sequence * 4 + jnp.minimum(index, last_ref[sequence])]" in source


def test_arrays_say_how_many_iterations_there_are_at_most():
    """By accesses that all lanes make, or the first lane of those before the loop's end."""
    for case in (paged(), of_lengths()):
        assert most_iterations(translate(*launched(case), "jax").analysis) == {0: 4}


def test_loops_that_nothing_bounds_are_not_divided():
    case = Case(
        name="turns",
        file=FILE,
        kernel="turns",
        arrays={"x_ptr": floats(16, 16), "count_ptr": np.array([3], np.int32)}
        | {"out_ptr": floats(16, 16)},
    )
    with pytest.raises(GraphError, match="no dimension can go in blocks"):
        translate(*launched(case), "pallas", {"_turn": 1})


def test_loops_that_write_as_often_as_data_say_are_not_divided():
    """Steps without an iteration would have blocks of the array, and nothing to write there."""
    case = recurrent()
    arrays = {**case.arrays, "length_ptr": np.array([32, 64], np.int32)}
    written = Case(
        name="written",
        file=FILE,
        kernel="written",
        arrays={name: arrays[name] for name in ("q_ptr", "length_ptr", "out_ptr")},
        scalars={"LENGTH": 64},
        constants={"WIDTH": 32, "CHUNK": 16},
        grid=(2,),
    )
    with pytest.raises(GraphError, match=r"no dimension can go in blocks .* not `chunk`"):
        translate(*launched(written), "pallas", {"chunk": 1})
    assert_same(written, translate(*launched(written), "pallas"), evaluated(written), 1e-5, 1e-6)


def test_steps_that_are_asked_for_have_to_divide_the_loop():
    with pytest.raises(GraphError, match="have to divide its 8 iterations, as 3 do not"):
        translate(*launched(attention(causal=False)), "pallas", {"start": 3})

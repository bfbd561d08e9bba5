"""Functions that read sizes off their arguments: against those emitted for each size alone."""

import math
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import hypothesis.strategies as st
import numpy as np
import pytest

pytest.importorskip("triton.language")

from hypothesis import given, settings

from translators.emit.general.fitting import Fitter
from translators.emit.general.formula import Factor, Formula, number, product_of, size
from translators.emit.general.template import template_of
from translators.general_translation import translate_general
from translators.resize.evidence import evidence
from translators.resize.reading import families
from translators.translation import load, translate
from translators.triton.binding import bind
from translators.triton.kernel_graph import kernel_graph
from translators.triton.kernels import find_kernel
from translators.triton.launch_text import parse_argument, parse_constant
from translators.triton.launches import grid_of_three
from translators.triton.loading import load_file
from translators.triton.recorder import record_call

HERE = Path(__file__).parent
OURS = HERE / "general_kernels.py"
COMMON = HERE.parent / "triton" / "kernels.py"


def cdiv(count, block):
    return -(-count // block)


def launched(file, name, arguments, constants, grid):
    kernel = find_kernel(load_file(file), name)
    parsed = [parse_argument(text, buffer=index) for index, text in enumerate(arguments)]
    parsed += [parse_constant(text) for text in constants]
    return kernel, bind(kernel, parsed, grid=grid_of_three(grid))


# Launches as functions of their sizes. A size of 1 is a constant for Triton, as in a real launch.


def vector_add(n, block=256):
    arrays = [f"{name}=f32[{n}]" for name in ("x_ptr", "y_ptr", "out_ptr")]
    return launched(
        COMMON, "vector_add", [*arrays, f"n={n}"], [f"BLOCK={block}"], (cdiv(n, block),)
    )


def softmax(rows, columns):
    arguments = [f"out_ptr=f32[{rows},{columns}]", f"x_ptr=f32[{rows},{columns}]"]
    arguments += [f"out_stride={columns}", f"x_stride={columns}", f"columns={columns}"]
    return launched(COMMON, "softmax", arguments, ["BLOCK=64"], (rows,))


def matmul(m, n, k):
    arguments = [f"a_ptr=f32[{m},{k}]", f"b_ptr=f32[{k},{n}]", f"c_ptr=f32[{m},{n}]"]
    arguments += [f"M={m}", f"N={n}", f"K={k}", f"stride_am={k}", "stride_ak=1"]
    arguments += [f"stride_bk={n}", "stride_bn=1", f"stride_cm={n}", "stride_cn=1"]
    constants = ["BLOCK_M=32", "BLOCK_N=32", "BLOCK_K=16", "ACTIVATION=none"]
    return launched(COMMON, "matmul", arguments, constants, (cdiv(m, 32), cdiv(n, 32)))


def layer_norm(rows, columns):
    arguments = [f"x_ptr=f32[{rows},{columns}]", f"y_ptr=f32[{rows},{columns}]"]
    arguments += [f"w_ptr=f32[{columns}]", f"b_ptr=f32[{columns}]"]
    arguments += [f"mean_ptr=f32[{rows}]", f"rstd_ptr=f32[{rows}]"]
    arguments += [f"stride={columns}", f"columns={columns}", "eps=1e-5"]
    return launched(COMMON, "layer_norm", arguments, ["BLOCK=32"], (rows,))


def gathered(elements, count):
    arguments = [f"x_ptr=f32[{elements}]", f"index_ptr=i32[{count}]", f"out_ptr=f32[{count}]"]
    return launched(
        OURS, "gathered", [*arguments, f"count={count}"], ["BLOCK=32"], (cdiv(count, 32),)
    )


def gathered_rows(rows, count, width):
    arguments = [f"x_ptr=f32[{rows},{width}]", f"index_ptr=i32[{count}]"]
    arguments += [f"out_ptr=f32[{count},{width}]", f"width={width}"]
    return launched(OURS, "gathered_rows", arguments, ["BLOCK=64"], (count,))


def doubled_flat(rows, columns):
    count = rows * columns
    arguments = [f"x_ptr=f32[{rows},{columns}]", f"out_ptr=f32[{rows},{columns}]"]
    return launched(
        OURS, "doubled_flat", [*arguments, f"numel={count}"], ["BLOCK=128"], (cdiv(count, 128),)
    )


def transposed(rows, columns):
    arguments = [f"x_ptr=f32[{rows},{columns}]", f"out_ptr=f32[{columns},{rows}]"]
    arguments += [f"rows={rows}", f"columns={columns}"]
    grid = (cdiv(rows, 16) * cdiv(columns, 16),)
    return launched(OURS, "transposed", arguments, ["BLOCK=16"], grid)


def picked_column(rows, columns, which):
    arguments = [f"x_ptr=f32[{rows},{columns}]", f"out_ptr=f32[{rows}]"]
    arguments += [f"which={which}", f"columns={columns}"]
    return launched(OURS, "picked_column", arguments, [], (rows,))


def heads_scaled(positions, heads):
    arguments = [f"x_ptr=f32[{positions},{heads},16]", f"scale_ptr=f32[{heads}]"]
    arguments += [f"out_ptr=f32[{positions},{heads},16]", f"heads={heads}"]
    return launched(OURS, "heads_scaled", arguments, ["WIDTH=16"], (positions * heads,))


def striding(count):
    arguments = [f"x_ptr=f32[{count}]", f"out_ptr=f32[{count}]", f"count={count}"]
    return launched(OURS, "striding", arguments, ["BLOCK=16"], (7,))


def convolved(count):
    arguments = [f"x_ptr=f32[{count}]", f"out_ptr=f32[{count}]", f"count={count}"]
    return launched(OURS, "convolved", arguments, ["TAPS=5", "BLOCK=32"], (cdiv(count, 32),))


def whole_blocks(count):
    arguments = [f"x_ptr=f32[{count}]", f"out_ptr=f32[{count}]"]
    return launched(OURS, "whole_blocks", arguments, ["BLOCK=32"], (cdiv(count, 32),))


def block_pointer_copy(rows, columns):
    arguments = [f"x_ptr=f32[{rows},{columns}]", f"out_ptr=f32[{columns},{rows}]"]
    arguments += [f"rows={rows}", f"columns={columns}", f"stride={columns}"]
    return launched(COMMON, "block_pointer_copy", arguments, ["BLOCK=16"], (cdiv(rows, 16),))


def early_returns(blocks):
    arguments = [f"x_ptr=f32[{16 * blocks}]", f"out_ptr=f32[{16 * blocks}]", "limit=3"]
    return launched(COMMON, "early_returns", arguments, ["BLOCK=16"], (blocks,))


@dataclass(frozen=True)
class Case:
    """A launch of which a function is made, and the sizes for which that is to hold.

    Attributes:
      launch: gives the kernel and the launch for some sizes.
      base: the sizes that the function is made from.
      most: the greatest of each size to try.
      reads: the parts of the text by which sizes are read.
      tolerance: relative; 0 means bit for bit.
    """

    launch: object
    base: tuple
    most: tuple
    reads: tuple = ()
    tolerance: float = 0.0


CASES = [
    Case(vector_add, (1000,), (3000,), ("n = x_ptr.shape[0]", "(n,)")),
    Case(vector_add, (1024,), (3000,), ("n = x_ptr.shape[0]",)),
    Case(vector_add, (100,), (3000,), ("n = x_ptr.shape[0]",)),
    Case(softmax, (5, 37), (90, 64), ("rows, columns = x_ptr.shape", "64 - columns"), 1e-6),
    Case(matmul, (40, 50, 35), (150, 150, 90), ("M, K = a_ptr.shape", "N = b_ptr.shape[1]"), 2e-5),
    Case(matmul, (64, 96, 32), (150, 150, 90), ("M, K = a_ptr.shape", "N = b_ptr.shape[1]"), 2e-5),
    # All sizes are the same: what they are is seen from the accesses.
    Case(matmul, (64, 64, 64), (150, 150, 90), ("M, K = a_ptr.shape", "N = b_ptr.shape[1]"), 2e-5),
    Case(transposed, (48, 48), (60, 60), ("rows, columns = x_ptr.shape",)),
    Case(layer_norm, (3, 100), (40, 150), ("rows, columns = x_ptr.shape",), 2e-5),
    Case(gathered, (70, 100), (150, 150), ("index_ptr: int32[count]",)),
    Case(gathered_rows, (11, 7, 50), (40, 40, 64), ("width",)),
    Case(doubled_flat, (13, 50), (60, 60), ("rows, columns = x_ptr.shape",)),
    Case(transposed, (20, 50), (60, 60), ("rows, columns = x_ptr.shape",)),
    Case(heads_scaled, (9, 6), (20, 20), ("heads",)),
    Case(striding, (500,), (900,), ("count = x_ptr.shape[0]",)),
    Case(convolved, (100,), (300,), ("x_ptr: float32[count]",)),
    Case(block_pointer_copy, (20, 50), (70, 70), ("rows, columns = x_ptr.shape",)),
]


def named(case):
    return f"{case.launch.__name__}{case.base}"


@cache
def made(launch, base):
    return translate_general(*launch(*base))


def arrays_for(launch, function, seed):
    """Random arrays for a function; integers are valid as indices of every first dimension."""
    rng = np.random.default_rng(seed)
    shapes = {array.name: array for array in launch.arrays}
    least = shapes["x_ptr"].shape[0] if "x_ptr" in shapes else 1
    found = []
    for name in function.parameters:
        array = shapes[name]
        if array.dtype == "fp32":
            found.append(rng.standard_normal(array.shape).astype(np.float32))
        else:
            found.append(rng.integers(0, least, array.shape).astype(np.int32))
    return found


def called(function, arrays):
    import jax

    found = jax.jit(load(function))(*arrays)
    return found if isinstance(found, tuple) else (found,)


@pytest.mark.parametrize("case", CASES, ids=named)
@settings(max_examples=6)
@given(data=st.data())
def test_one_function_gives_what_that_of_each_size_gives(case, data):
    general = made(case.launch, case.base).function
    sizes = [data.draw(st.integers(1, most)) for most in case.most]
    kernel, launch = case.launch(*sizes)
    special = translate(kernel, launch).function
    # What arrays held before may matter to the one for all sizes, and to no one else.
    arrays = dict(zip(general.parameters, arrays_for(launch, general, sum(sizes)), strict=True))
    found = called(general, [arrays[name] for name in general.parameters])
    given_ = {
        **dict(zip(special.parameters, arrays_for(launch, special, 0), strict=True)),
        **arrays,
    }
    wanted = called(special, [given_[name] for name in special.parameters])
    assert general.results == special.results
    for one, other in zip(found, wanted, strict=True):
        if case.tolerance:
            np.testing.assert_allclose(one, other, rtol=case.tolerance, atol=case.tolerance)
        else:
            np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("case", CASES, ids=named)
def test_sizes_are_read_off_arguments(case):
    function = made(case.launch, case.base).function
    for text in case.reads:
        assert text in function.source, function.source
    assert is_general(function)


def is_general(function):
    return any("holds for other sizes too" in note.text for note in function.notes)


@pytest.mark.parametrize("case", CASES, ids=named)
def test_the_launch_itself_is_one_of_its_family(case):
    _, launch = case.launch(*case.base)
    for family in families(launch):
        assert family.resized({}) == launch


@pytest.mark.parametrize("case", CASES, ids=named)
def test_numbers_put_back_into_a_template_give_the_text_again(case):
    function = translate(*case.launch(*case.base)).function
    template = template_of(function)
    lines = list(template.body(template.numbers, {}))
    assert lines == function.source.splitlines()[-len(lines) :]


def test_other_shapes_than_it_is_for_are_refused():
    import jax.numpy as jnp

    function = load(made(softmax, (5, 37)).function)
    with pytest.raises(ValueError, match="`columns` must be at most 64, not 65"):
        function(jnp.ones((5, 65)))
    with pytest.raises(ValueError, match="`x_ptr` must have 2 dimensions, not 1"):
        function(jnp.ones(5))
    with pytest.raises(ValueError, match="from 1 to"):
        function(jnp.ones((5, 0)))
    function = load(made(matmul, (40, 50, 35)).function)
    with pytest.raises(ValueError, match=r"`b_ptr` must have the shape \(K, N\), not \(7, 5\)"):
        function(jnp.ones((4, 6)), jnp.ones((7, 5)))


@pytest.mark.parametrize(
    ("launch", "base", "block"), [(whole_blocks, (96,), 32), (early_returns, (5,), 16)]
)
def test_where_no_mask_is_blocks_must_be_whole(launch, base, block):
    import jax.numpy as jnp

    function = made(launch, base).function
    assert is_general(function), function.notes
    arrays = [jnp.arange(9.0 * block)] * len(function.parameters)
    count = 9 * block if launch is whole_blocks else 9
    special = translate(*launch(count)).function
    assert special.parameters == function.parameters
    for one, other in zip(called(function, arrays), called(special, arrays), strict=True):
        np.testing.assert_array_equal(one, other)
    arrays = [jnp.arange(9.0 * block + 1)] * len(function.parameters)
    with pytest.raises(ValueError, match=f"must be a multiple of {block}, not {9 * block + 1}"):
        load(function)(*arrays)


def test_a_scalar_with_the_value_of_a_size_by_chance_is_not_taken_for_it():
    import jax.numpy as jnp

    function = made(picked_column, (6, 50, 6)).function
    assert "x_ptr.shape != (6, columns)" in function.source, function.source
    assert "      which: 6\n" in function.source, function.source
    with pytest.raises(ValueError, match=r"must have the shape \(6, columns\)"):
        load(function)(jnp.ones((7, 50)))
    with pytest.raises(ValueError, match="`columns` must be at least 7, not 6"):
        load(function)(jnp.ones((6, 6)))
    found = load(function)(jnp.arange(6 * 40.0).reshape(6, 40))
    np.testing.assert_array_equal(found, np.arange(6) * 40.0 + 6)


def test_what_no_argument_says_stays_as_it_was_and_the_docstring_says_so():
    function = made(picked_column, (20, 50, 6)).function
    assert "rows, columns = x_ptr.shape" in function.source, function.source
    assert "      which: 6\n" in function.source, function.source


def test_what_cannot_be_for_other_sizes_is_as_before_and_says_why():
    # A program more or less would leave elements as they were, whatever the sizes.
    arguments = ["x_ptr=f32[100]", "out_ptr=f32[100]", "count=90"]
    kernel, launch = launched(OURS, "striding", arguments, ["BLOCK=16"], (7,))
    special = translate(kernel, launch).function
    function = translate_general(kernel, launch).function
    assert function.source == special.source
    (note,) = (note for note in function.notes if note not in special.notes)
    assert note.text.startswith("holds for the sizes of its launch alone: ")


def test_the_docstring_says_which_launches_it_is_for():
    source = made(matmul, (40, 50, 35)).function.source
    for line in (
        "a_ptr: float32[M, K].",
        "grid: ceil(M / 32), ceil(N / 32)",
        "stride_bk: N",
        "c_ptr: shape M, N",
        "BLOCK_K: 16",
    ):
        assert f"      {line}\n" in source, source
    assert "Made for" not in source


def test_equal_sizes_are_one_unless_other_launches_tell_them_apart():
    kernel, launch = doubled_flat(40, 40)
    square = translate_general(kernel, launch).function
    assert "if x_ptr.shape != (rows, rows)" in square.source, square.source
    _, other = doubled_flat(50, 30)
    free = translate_general(kernel, launch, [other]).function
    assert "rows, columns = x_ptr.shape" in free.source, free.source


def test_what_equal_scalars_are_is_seen_from_the_accesses():
    kernel, launch = matmul(64, 64, 64)
    seen = evidence(kernel_graph(kernel, launch), launch, ())
    assert dict(seen.sizes) == {
        ("a_ptr", 0): "M",
        ("a_ptr", 1): "K",
        ("b_ptr", 0): "K",
        ("b_ptr", 1): "N",
        ("c_ptr", 0): "M",
        ("c_ptr", 1): "N",
    }
    assert {name: set(arrays) for name, arrays in seen.strides.items() if arrays} == {
        "stride_am": {"a_ptr"},
        "stride_bk": {"b_ptr"},
        "stride_cm": {"c_ptr"},
    }


@pytest.mark.parametrize(
    ("call", "other"),
    [
        ("add(f32[5000], f32[5000])", "add(f32[98432], f32[98432])"),
        ("add_in_place(f32[5000], f32[5000])", "add_in_place(f32[77], f32[77])"),
        ("multiply(f32[40,35], f32[35,50])", "multiply(f32[70,90], f32[90,33])"),
        ("warmed_softmax(f32[5,100])", "warmed_softmax(f32[700,70])"),
    ],
)
def test_launches_that_host_code_makes_for_other_sizes_are_of_the_family(call, other):
    module = load_file(COMMON)
    (first,), (second,) = record_call(module, call), record_call(module, other)
    function = translate_general(first.kernel, first.launch).function
    assert is_general(function), function.notes
    sizes = {}
    for array in second.launch.arrays:
        told = re.search(
            rf"^ *{array.name}: (?:float32\[|shape )(.*?)(\]\.)?$", function.source, re.M
        )
        for name, size_ in zip(told[1].split(", "), array.shape, strict=True):
            assert sizes.setdefault(name, size_) == size_
    grid = re.search(r"^ *grid: (.*)$", function.source, re.M)[1]
    told = eval(f"({grid},)", {"ceil": math.ceil, **sizes})
    assert grid_of_three(told) == second.launch.grid
    assert any(family.resized(sizes) == second.launch for family in families(first.launch))


def test_other_launches_refute_what_holds_by_chance():
    _, launch = vector_add(512)
    _, other = vector_add(700)
    found = [family.grid[0] for family in families(launch, [other])]
    assert found == [product_of((Factor(("n",), 256),))]


# Formulas


SIZES = [{"n": 101, "m": 307}, {"n": 137, "m": 541}, {"n": 211, "m": 409}, {"n": 263, "m": 811}]
BLOCKS = (16, 64)


def factors():
    single = st.builds(lambda name: Factor((name,)), st.sampled_from(["m", "n"]))
    blocks = st.builds(
        lambda name, block: Factor((name,), block),
        st.sampled_from(["m", "n"]),
        st.sampled_from(BLOCKS),
    )
    return st.one_of(single, blocks)


@given(chosen=st.lists(factors(), min_size=1, max_size=2), by=st.sampled_from([1, -1, 16, 64]))
def test_products_are_found_from_their_values(chosen, by):
    formula = product_of(chosen, by)
    found = Fitter(SIZES, BLOCKS).formula(tuple(map(formula.value, SIZES)))
    assert found is not None
    elsewhere = {"n": 1013, "m": 77}
    assert found.value(elsewhere) == formula.value(elsewhere)


@given(name=st.sampled_from(["m", "n"]), block=st.sampled_from(BLOCKS))
def test_padding_is_found_from_its_values(name, block):
    blocks = product_of((Factor((name,), block),), block)
    values = tuple(blocks.value(sizes) - sizes[name] for sizes in SIZES)
    found = Fitter(SIZES, BLOCKS).formula(values)
    assert found is not None
    assert (
        found.value({"n": 1013, "m": 77})
        == {"n": 1013, "m": 77}[name] // -block * -block
        - {
            "n": 1013,
            "m": 77,
        }[name]
    )


@given(
    values=st.tuples(*[st.integers(1, 2000)] * len(SIZES)).filter(lambda each: len(set(each)) > 1)
)
def test_a_formula_gives_every_value_that_it_was_found_from(values):
    found = Fitter(SIZES, BLOCKS).formula(values)
    assert found is None or tuple(map(found.value, SIZES)) == values


@given(
    terms=st.lists(st.tuples(st.lists(factors(), max_size=2), st.integers(-9, 9))),
    by=st.integers(-9, 9),
)
def test_the_text_of_a_formula_is_what_it_is(terms, by):
    formula = number(by)
    for chosen, coefficient in terms:
        if chosen and coefficient:
            formula = Formula(
                terms=(*formula.terms, (tuple(sorted(chosen)), coefficient)), offset=by
            )
    names = {each: f"f{index}" for index, each in enumerate(sorted(formula.factors))}
    values = {name: factor.value(SIZES[0]) for factor, name in names.items()}
    assert eval(formula.text(names), values) == formula.value(SIZES[0])
    product = formula.times(size("n"))
    assert product.value(SIZES[0]) == formula.value(SIZES[0]) * SIZES[0]["n"]

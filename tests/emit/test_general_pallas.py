"""Kernels in Pallas that read sizes off their arguments: against JAX for each size alone."""

import subprocess
import sys
from functools import cache, partial
from importlib.util import find_spec
from pathlib import Path

import hypothesis.strategies as st
import numpy as np
import pytest

pytest.importorskip("triton.language")

from hypothesis import given
from test_general_sizes import (
    Case,
    arrays_for,
    called,
    doubled_flat,
    heads_scaled,
    is_general,
    layer_norm,
    matmul,
    named,
    softmax,
    striding,
    transposed,
    vector_add,
    whole_blocks,
)

from translators.emit.general.blocks import following
from translators.emit.general.formula import Factor, Formula, number, product_of
from translators.emit.general.template import template_of
from translators.emit.pallas.lengths import UnknownDimensionError
from translators.general_translation import translate_general
from translators.general_translation.lowering import lowering_problem
from translators.graph.errors import GraphError
from translators.translation import load, translate

SETTINGS = Path(__file__).parents[2] / "pyproject.toml"
CASES = [
    Case(
        vector_add,
        (1000,),
        (300_000,),
        (
            "block_offsets = min(n, 262144)",
            "grid=(pl.cdiv(n, block_offsets),)",
            "pl.BlockSpec((block_offsets,), lambda offsets: (offsets,))",
            "out_shape=jax.ShapeDtypeStruct((n,), jnp.float32)",
        ),
    ),
    Case(
        softmax,
        (5, 37),
        (1500, 64),
        (
            "`columns` must be at most 64",
            "block_row = min(rows, ",
            "grid=(pl.cdiv(rows, block_row),)",
            "jax.ShapeDtypeStruct((rows, columns), jnp.float32)",
        ),
        1e-6,
    ),
    Case(
        matmul,
        (40, 50, 35),
        (1100, 600, 90),
        (
            "block_rows = min(M, ",
            "block_columns = min(N, ",
            "grid=(pl.cdiv(M, block_rows), pl.cdiv(N, block_columns))",
            "`K` must be at most ",
        ),
        2e-5,
    ),
    Case(layer_norm, (3, 100), (300, 130), ("grid=(pl.cdiv(rows, block_row),)",), 2e-5),
    Case(transposed, (20, 50), (300, 300), ("pl.cdiv(rows, block_row)",)),
    Case(doubled_flat, (13, 50), (90, 90), ("min(columns * rows, ",)),
]
# Functions for the sizes of one launch alone.
SPECIAL = [*CASES, Case(striding, (500,), (900,)), Case(heads_scaled, (9, 6), (20, 20))]


@cache
def made(launch, base):
    return translate_general(*launch(*base), emit="pallas").function


@pytest.mark.parametrize("case", CASES, ids=named)
def test_blocks_and_grids_follow_the_sizes_of_arguments(case):
    function = made(case.launch, case.base)
    assert is_general(function), function.notes
    assert function.pallas
    for text in case.reads:
        assert text in function.source, function.source


@pytest.mark.parametrize("case", CASES, ids=named)
@pytest.mark.parametrize("part", [7, 1])
def test_one_kernel_gives_what_jax_gives_for_each_size(case, part):
    general = made(case.launch, case.base)
    sizes = [max(1, most // part - 3 + part % 2) for most in case.most]
    kernel, launch = case.launch(*sizes)
    special = translate(kernel, launch).function
    arrays = dict(zip(general.parameters, arrays_for(launch, general, sum(sizes)), strict=True))
    given_ = {
        **dict(zip(special.parameters, arrays_for(launch, special, 0), strict=True)),
        **arrays,
    }
    call = partial(load(general), interpret=True)
    found = call(*arrays.values())
    found = found if isinstance(found, tuple) else (found,)
    wanted = called(special, [given_[name] for name in special.parameters])
    by_name = dict(zip(special.results, wanted, strict=True))
    for name, array in zip(general.results, found, strict=True):
        tolerance = case.tolerance
        np.testing.assert_allclose(array, by_name[name], rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("case", CASES, ids=named)
def test_blocks_are_legal_for_sizes_above_and_below_one_block(case):
    function = made(case.launch, case.base)
    for sizes in ([1] * len(case.base), case.base, case.most):
        _, launch = case.launch(*sizes)
        assert not lowering_problem(function, load(function), launch), sizes


def test_other_shapes_than_it_is_for_are_refused():
    import jax.numpy as jnp

    function = load(made(softmax, (5, 37)))
    with pytest.raises(ValueError, match="`columns` must be at most 64, not 65"):
        function(jnp.ones((5, 65)), interpret=True)
    function = load(made(matmul, (40, 50, 35)))
    with pytest.raises(ValueError, match=r"`b_ptr` must have the shape \(K, N\), not \(7, 5\)"):
        function(jnp.ones((4, 6)), jnp.ones((7, 5)), interpret=True)


def test_where_blocks_must_divide_the_array_the_sizes_are_those_of_the_launch_and_a_note_says_so():
    function = made(whole_blocks, (9600,))
    if is_general(function):
        assert "must be a multiple of" in function.source
    else:
        assert any(
            "holds for the sizes of its launch alone" in each.text for each in function.notes
        )


@pytest.mark.parametrize("case", SPECIAL, ids=named)
def test_numbers_put_back_into_a_template_give_the_text_again(case):
    function = translate(*case.launch(*case.base), "pallas").function
    template = template_of(function)
    lines = list(template.body(template.numbers, {}))
    assert lines == function.source.splitlines()[-len(lines) :]


def test_files_are_formatted_and_have_nothing_unused(tmp_path):
    if find_spec("ruff") is None:
        pytest.skip("ruff is not installed")
    for case in SPECIAL:
        special = translate(*case.launch(*case.base), "pallas").function
        (tmp_path / f"{special.name}.py").write_text(special.source, encoding="utf-8")
    for case in CASES:
        general = made(case.launch, case.base)
        (tmp_path / f"{general.name}_general.py").write_text(general.source, encoding="utf-8")
    for arguments in (("check",), ("format", "--diff")):
        command = [sys.executable, "-m", "ruff", *arguments, "--config", str(SETTINGS), "."]
        found = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert found.returncode == 0, found.stdout


# Lengths of blocks that somebody asks for


def test_blocks_have_the_length_that_is_asked_for():
    function = translate(*matmul(2000, 2000, 512), "pallas", {"rows": 128}).function
    assert {each.name: each.length for each in function.blocks}["rows"] == 128
    assert "pl.BlockSpec((128, " in function.source


def test_a_longer_block_than_the_dimension_is_the_dimension():
    function = translate(*matmul(200, 200, 64), "pallas", {"rows": 1 << 20}).function
    assert {each.name: each.length for each in function.blocks}["rows"] == 200


def test_lengths_that_divide_blocks_of_the_kernel_are_refused():
    with pytest.raises(GraphError, match="blocks along `rows` are multiples of 32, not 100"):
        translate(*matmul(2000, 2000, 512), "pallas", {"rows": 100})


def test_dimensions_that_do_not_go_in_blocks_are_refused_by_name():
    with pytest.raises(UnknownDimensionError, match=r"`rows`, `columns` can go .*, not `depth`"):
        translate(*matmul(2000, 2000, 512), "pallas", {"depth": 128})


# Formulas that follow the length of a block

SIZES = [{"n": 3001, "block_n": 256}, {"n": 7013, "block_n": 128}]


@given(
    count=st.integers(0, 3),
    multiple=st.integers(-2, 2),
    part=st.sampled_from([0, 2, 4]),
    offset=st.sampled_from([0, 1, -1]),
)
def test_numbers_that_follow_a_block_are_found_with_its_name(count, multiple, part, offset):
    length = 512

    def formula(block):
        """A sum of a count of blocks, a multiple of the block, and a number."""
        terms = [((Factor(("n",), 1 if block else length, block),), count)]
        if block:
            terms.append(((Factor((block,)),), multiple))
            return Formula(terms=tuple(each for each in terms if each[1]), offset=offset)
        kept = tuple(each for each in terms if each[1])
        return Formula(terms=kept, offset=multiple * length + offset)

    named_, plain = formula("block_n"), formula("")
    if offset and multiple:
        return  # their sum is read as one number
    seen = [(sizes, named_.value(sizes)) for sizes in SIZES]
    found = following(plain, length, "block_n", seen)
    assert found is not None
    elsewhere = {"n": 1013, "block_n": 64}
    assert found.value(elsewhere) == named_.value(elsewhere)
    if part:
        rows = product_of((Factor(("block_n",), part),))
        seen = [(sizes, rows.value(sizes)) for sizes in SIZES]
        found = following(number(length // part), length, "block_n", seen)
        assert found is not None
        assert found.value(elsewhere) == rows.value(elsewhere)


def test_a_number_that_follows_nothing_has_no_formula():
    seen = [(sizes, value) for sizes, value in zip(SIZES, (5, 77), strict=True)]
    assert following(number(8), 512, "block_n", seen) is None


@pytest.mark.parametrize("sizes", [(151, 96), (6, 40), (151, 512)])
def test_a_function_for_all_sizes_takes_its_own_launch(sizes):
    """Loops along rows that store, in steps of many rows."""
    import jax

    kernel, launch = layer_norm(*sizes)
    function = translate_general(kernel, launch, emit="pallas").function
    shapes = {each.name: jax.ShapeDtypeStruct(each.shape, np.float32) for each in launch.arrays}
    given = [shapes[name] for name in function.parameters]
    results = jax.eval_shape(partial(load(function), interpret=True), *given)
    assert [each.shape for each in results] == [shapes[name].shape for name in function.results]

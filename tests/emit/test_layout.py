"""Statements broken over lines say the same, and fit."""

import ast
import subprocess
import sys
from importlib.util import find_spec

import hypothesis.strategies as st
import pytest
from hypothesis import given

from translators.emit.layout import WIDTH, laid_out

NAMES = st.sampled_from(
    ["x", "total", "jnp.float32", "a_rather_long_name_of_a_value", '"mk,kn->mn"']
)


def calls(inner):
    arguments = st.lists(inner, min_size=1, max_size=6)
    functions = st.sampled_from(["jnp.where", "f", "x.reshape", "lax.fori_loop"])
    written = st.builds(lambda name, given: f"{name}({', '.join(given)})", functions, arguments)
    tuples = st.builds(lambda given: f"({', '.join(given)},)", arguments)
    sums = st.builds(lambda a, b: f"{a} + {b}", inner, inner)
    return st.one_of(written, tuples, sums, st.builds(lambda a: f"{a}[0, :, None]", written))


EXPRESSIONS = st.recursive(NAMES, calls, max_leaves=12)


@given(EXPRESSIONS, st.sampled_from(["", "    ", "        "]))
def test_a_broken_statement_is_the_same_statement(expression, indent):
    statement = f"name = {expression}"
    lines = laid_out(statement, indent)
    broken = "\n".join(line.removeprefix(indent) for line in lines)
    assert ast.dump(ast.parse(broken)) == ast.dump(ast.parse(statement))
    assert all(line.startswith(indent) for line in lines)


@given(st.lists(NAMES, min_size=1, max_size=40))
def test_long_calls_of_short_arguments_fit(arguments):
    lines = laid_out(f"result = function({', '.join(arguments)})", "    ")
    assert max(map(len, lines)) <= WIDTH


def test_what_fits_stays_on_one_line():
    assert laid_out("x = f(a, b)", "    ") == ["    x = f(a, b)"]


BROKEN = """\
rows_of_a_matrix_with_a_long_name = [a_rather_long_name_of_a_value_in_a_list_of_its_own_without_others]
rows_of_a_matrix_with_a_long_name = (the_first_of_two_rather_long_names, the_second_of_two_long_names)
rows_of_a_matrix_with_a_long_name = matrix[the_first_of_two_rather_long_names, the_second_of_two_names]
rows_of_a_matrix_with_a_long_name = outer(inner(the_first_long_name, the_second_long_name, the_third_long_name, more))
rows_of_a_matrix_with_a_long_name = lax.update(the_first_long_name, the_second_long_name, (one,), aligned=False)[:500]
rows_of_a_matrix_with_a_long_name = pl.pallas_call(kernel, grid=(4, 2), in_specs=[pl.BlockSpec((128, 128), lambda rows, _columns: (rows, 0)), pl.BlockSpec((128, 128), lambda rows, columns: (0, columns))], interpret=interpret)(x_ptr, y_ptr)
rows_of_a_matrix_with_a_long_name = f(the_first_of_two_rather_long_names, another) + g(the_second_of_two_names, other)
rows_of_a_matrix_with_a_long_name = f(the_first_of_two_rather_long_names)[..., None] + g(the_second_of_two_names)[..., None]
rows_of_a_matrix_with_a_long_name = f(the_first_of_two_rather_long_names).reshape(the_second_of_two_names, and_more)[..., None]
rows_of_a_matrix_with_a_long_name = array.reshape(-1).at[places_in_it].set(the_second_of_two_names).reshape((4, 1))
rows_of_a_matrix_with_a_long_name = the_first_of_three_rather_long_names + the_second_of_them + the_third_of_them_all
rows_of_a_matrix_with_a_long_name = the_first_of_three_rather_long_names + the_second_of_them(5) + the_third_of_them * and_one_more
rows = jnp.where((the_first_of_three_names >= the_first_bound) & (the_second_of_them >= the_second_bound) & (the_third >= the_third_bound), b, c)
"""  # noqa: E501


def test_statements_are_broken_as_ruff_breaks_them(tmp_path):
    if find_spec("ruff") is None:
        pytest.skip("ruff is not installed")
    lines = [line for each in BROKEN.split("\n") for line in laid_out(each, "") if line]
    (tmp_path / "broken.py").write_text("\n".join(lines) + "\n", encoding="utf-8")
    command = [sys.executable, "-m", "ruff", "format", "--isolated", "--line-length", str(WIDTH)]
    found = subprocess.run([*command, "--diff", "."], cwd=tmp_path, capture_output=True, text=True)
    assert found.returncode == 0, found.stdout
    assert max(map(len, lines)) <= WIDTH

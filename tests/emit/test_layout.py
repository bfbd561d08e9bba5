"""Statements broken over lines say the same, and fit."""

import ast

import hypothesis.strategies as st
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

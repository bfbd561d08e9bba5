"""Printing and reading are each other's inverse; bad text is refused where it is bad."""

import contextlib
import math
import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_evaluator import EARLY_RETURN, LOCK, MATMUL, SOFTMAX, VECTOR_ADD, WHILE

from translators.graph.builder import Builder
from translators.graph.errors import EvaluationError, GraphSyntaxError
from translators.graph.evaluator import evaluate
from translators.graph.graph import (
    Function,
    Module,
    Region,
    Value,
    make_module,
    make_region,
    users,
    walk,
)
from translators.graph.location import SourceLocation
from translators.graph.numerics import dtype_of
from translators.graph.printer import print_module
from translators.graph.reader import read_module, read_type
from translators.graph.types import (
    F32,
    FLOAT_TYPES,
    I1,
    I32,
    DescriptorType,
    ElementType,
    FloatType,
    IntType,
    PointerType,
    TensorType,
    Type,
)
from translators.graph.verifier import problems, verify

KERNELS = [VECTOR_ADD, SOFTMAX, MATMUL.replace("TYPE", "bf16"), EARLY_RETURN, WHILE, LOCK]

elements: st.SearchStrategy[ElementType] = st.recursive(
    st.one_of(st.sampled_from(list(FLOAT_TYPES.values())), st.integers(1, 64).map(IntType)),
    lambda inner: inner.map(PointerType),
    max_leaves=3,
)
tensors = st.builds(
    TensorType, st.lists(st.integers(1, 1024), min_size=1, max_size=4).map(tuple), elements
)
types: st.SearchStrategy[Type] = st.one_of(elements, tensors, tensors.map(DescriptorType))


@given(types)
def test_a_type_is_read_back_as_itself(type_: Type) -> None:
    assert read_type(str(type_)) == type_


@pytest.mark.parametrize(
    "text", ["i0", "i65", "f31", "tensor<f32>", "tensor<0xf32>", "ptr<", "ptr<x>", "desc<4x>", ""]
)
def test_what_is_no_type_is_none(text: str) -> None:
    assert read_type(text) is None


@pytest.mark.parametrize("text", KERNELS)
def test_a_kernel_is_printed_as_it_was_read(text: str) -> None:
    once = print_module(read_module(text))
    assert print_module(read_module(once)) == once
    assert re.sub(r"\s+", " ", once).strip() == re.sub(r"\s+", " ", text).strip()


locations = st.none() | st.builds(
    SourceLocation,
    file=st.text(min_size=1, max_size=8),
    line=st.integers(1, 999),
    column=st.integers(0, 99),
    text=st.text(max_size=12),
)
hints = st.sampled_from(["", "x", "x_1", "acc", "7", "größe", "a b"])


class Writer:
    """Writes random straight-line code with nested loops and branches, legal by construction."""

    def __init__(self, draw: st.DrawFn) -> None:
        self.draw = draw
        self.body = make_region([PointerType(F32), I32], ["out", "n"])
        self.builder = Builder(self.body)
        self.budget = 14

    def pick(self, scope: list[Value], type_: Type) -> Value:
        return self.draw(st.sampled_from([each for each in scope if each.type == type_]))

    def made(self, value: Value) -> Value:
        value.name = self.draw(hints)
        return value

    def block(self, scope: list[Value], depth: int) -> list[Value]:
        scope = list(scope)
        for _ in range(self.draw(st.integers(0, 4))):
            self.budget -= 1
            if self.budget < 0:
                break
            self.builder.location = self.draw(locations)
            kinds = ["float", "int", "const"] + (["for", "if"] if depth < 3 else [])
            kind = self.draw(st.sampled_from(kinds))
            scope.append(self.made(getattr(self, "add_" + kind)(scope, depth)))
        return scope

    def add_float(self, scope: list[Value], depth: int) -> Value:
        name = self.draw(st.sampled_from(["arith.addf", "arith.maxnumf", "arith.subf"]))
        return self.builder.value(name, self.pick(scope, F32), self.pick(scope, F32))

    def add_int(self, scope: list[Value], depth: int) -> Value:
        name = self.draw(st.sampled_from(["arith.addi", "arith.divsi", "arith.xori"]))
        return self.builder.value(name, self.pick(scope, I32), self.pick(scope, I32))

    def add_const(self, scope: list[Value], depth: int) -> Value:
        number = self.draw(st.floats(width=32) | st.integers(-(1 << 31), (1 << 31) - 1))
        return self.builder.constant(number, F32 if isinstance(number, float) else I32)

    def add_for(self, scope: list[Value], depth: int) -> Value:
        bounds = [self.builder.constant(each, I32) for each in (0, self.draw(st.integers(0, 3)), 1)]
        region = make_region([I32, F32])
        with self.builder.inside(region):
            inner = self.block([*scope, *region.arguments], depth + 1)
            self.builder.op("scf.yield", self.pick(inner, F32))
        return self.builder.value("scf.for", *bounds, self.pick(scope, F32), regions=[region])

    def add_if(self, scope: list[Value], depth: int) -> Value:
        left, right = self.pick(scope, I32), self.pick(scope, I32)
        condition = self.builder.value("arith.cmpi", left, right, predicate="slt")
        regions = [make_region(), make_region()]
        for region in regions:
            with self.builder.inside(region):
                inner = self.block(scope, depth + 1)
                self.builder.op("scf.yield", self.pick(inner, I32))
        return self.builder.value("scf.if", condition, results=[I32], regions=regions)

    def module(self) -> Module:
        start = [self.builder.constant(0.5, F32), self.builder.value("tt.get_program_id", axis=0)]
        scope = self.block([*self.body.arguments, *start], 0)
        self.builder.op("tt.store", self.body.arguments[0], self.pick(scope, F32))
        self.builder.op("tt.return")
        function = Function(
            name=self.draw(st.text(min_size=1, max_size=5)),
            body=self.body,
            hints=({"tt.divisibility": 16}, {}),
            location=self.draw(locations),
        )
        return make_module([function])


@st.composite
def modules(draw: st.DrawFn) -> Module:
    return Writer(draw).module()


@given(modules())
@settings(max_examples=60)
def test_a_graph_read_back_is_legal_prints_alike_and_computes_alike(module: Module) -> None:
    verify(module)
    text = print_module(module)
    again = read_module(text)
    verify(again)
    assert print_module(again) == text
    assert [op.location for op in walk(again.kernel.body)] == [
        op.location for op in walk(module.kernel.body)
    ]
    found = [
        evaluate(each, (np.zeros(1, np.float32), 3), (2,)).arrays[0] for each in (module, again)
    ]
    np.testing.assert_array_equal(*found)  # type: ignore[arg-type]


def test_users_are_found_in_nested_regions() -> None:
    kernel = read_module(EARLY_RETURN).kernel
    names = {each.name: each for op in walk(kernel.body) for each in op.results}
    assert [op.name for op, _ in users(kernel.body)[names["p"]]] == [
        "tt.load",
        "tt.store",
        "tt.store",
    ]
    assert [index for _, index in users(kernel.body)[names["zero"]]] == [0, 1]


def test_nesting_of_any_depth_is_read_printed_checked_and_run() -> None:
    """Deeper than Python recurses."""
    depth = 3000
    body = make_region([PointerType(I32)], ["x"])
    builder = Builder(body)
    yes = builder.constant(1, I1)
    regions: list[Region] = [body]
    for _ in range(depth):
        regions.append(make_region())
        builder.region = regions[-2]
        builder.op("scf.if", yes, regions=[regions[-1]])
    builder.region = regions[-1]
    builder.op("tt.store", body.arguments[0], builder.constant(5, I32))
    for region in reversed(regions):
        builder.region = region
        builder.op("tt.return" if region is body else "scf.yield")
    module = make_module([Function(name="deep", body=body)])
    text = print_module(module)
    again = read_module(text)
    verify(again)
    assert print_module(again) == text
    found = evaluate(again, [np.zeros(1, np.int32)], (1,)).arrays[0]
    assert found is not None and found.tolist() == [5]


@pytest.mark.parametrize("number", [0.0, -0.0, 1e22, 1e-45, math.pi, math.inf, -math.inf, math.nan])
def test_a_float_is_read_back_as_itself(number: float) -> None:
    constant = f"%0 = arith.constant() {{value = {number!r}}} : f64"
    text = f'kernel @"k"() {{\n  {constant}\n  tt.return()\n}}\n'
    module = read_module(text)
    value: Any = module.kernel.body.ops[0].attributes["value"]
    assert type(value) is float and repr(value) == repr(number)
    assert print_module(module) == text


@pytest.mark.parametrize(
    ("text", "message", "line", "column"),
    [
        ("", "there is no kernel", 1, 1),
        ('func @"f"() {\n}', "there is no kernel", 2, 2),
        ('kernel @"k"() {\n  tt.return()\n', "expected a word, found ``", 3, 1),
        ('kernel @"k"() {\n  tt.store(%x)\n}', "`%x` is not defined before its use", 2, 12),
        ('kernel @"k"(%x: f31) {\n}', "`f31` is no type", 1, 17),
        ('kernel @"k"() {\n  %a = tt.load() : i32, i32\n}', "1 results have 2 types", 3, 1),
        ('kernel @"k"(%x: i32, %x: i32) {\n}', "`%x` is defined twice", 1, 22),
        ('kernel @"k"() {\n}\nkernel @"l"() {\n}', "there are two kernels", 4, 2),
        ('kernel @"k"() {\n}\nfunc @"k"() {\n}', 'the function "k" occurs twice', 4, 2),
        ('kernel @"k"() ; {\n}', "no token starts with ';'", 1, 15),
        ('kernel @"k"() at "f":1.5 {\n}', "expected a whole number, found `1.5`", 1, 22),
        ('kernel @"\\q"() {\n}', 'the string "\\\\q" cannot be read', 1, 9),
    ],
)
def test_bad_text_is_refused_where_it_is_bad(
    text: str, message: str, line: int, column: int
) -> None:
    with pytest.raises(
        GraphSyntaxError, match=re.escape(message).replace("\\\\\\\\", "\\\\")
    ) as caught:
        read_module(text)
    assert (caught.value.line, caught.value.column) == (line, column)


@st.composite
def damaged(draw: st.DrawFn) -> str:
    """A kernel with some of its tokens lost, doubled or replaced by others."""
    tokens = re.findall(r'"[^"]*"|%?[\w.]+(?:<[\w<>]*>)?|->|\S', draw(st.sampled_from(KERNELS)))
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(tokens) - 1))
        other = tokens[draw(st.integers(0, len(tokens) - 1))]
        tokens[at : at + 1] = draw(st.sampled_from([[], [tokens[at]] * 2, [other]]))
    return " ".join(tokens)


@given(damaged())
@settings(max_examples=400)
def test_damaged_text_is_refused_or_runs_or_fails_as_a_kernel_may(text: str) -> None:
    """Neither the reader, the verifier nor the evaluator stumbles over what it is given."""
    try:
        module = read_module(text)
    except GraphSyntaxError:
        return
    if list(problems(module)):
        return
    given_arguments = [argument_for(each.type) for each in module.kernel.arguments]
    if any(each is None for each in given_arguments):
        return
    with contextlib.suppress(EvaluationError):
        evaluate(module, given_arguments, (2,), step_limit=2000)


def argument_for(type_: Type) -> Any:
    if isinstance(type_, PointerType) and not isinstance(type_.pointee, PointerType):
        return np.zeros(64, dtype_of(type_.pointee))
    return 3 if isinstance(type_, IntType | FloatType) else None

"""Triton IR as text -> op graph, without Triton's front end."""

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("jaxlib.mlir.ir")

from hlo_tools.errors import InputError
from translators.graph.evaluator import evaluate
from translators.graph.graph import walk
from translators.graph.types import FLOAT_TYPES, I8, I32, PointerType, TensorType
from translators.graph.verifier import verify
from translators.triton.launch_text import parse_argument
from translators.triton.launches import (
    KernelSource,
    LaunchError,
    ScalarArgument,
)
from translators.triton.mlir_values import KEYWORDS, UnknownTypeError, location_of, type_of
from translators.triton.ttir import TtirError, read_ttir
from translators.triton.ttir_launches import bind_graph


def kernel(body, arguments=""):
    return f"module {{\n  tt.func public @k({arguments}) {{\n{body}\n    tt.return\n  }}\n}}\n"


def ops(text):
    return list(walk(read_ttir(text).kernel.body))


SYNTAX = {
    ("arith.cmpi", "predicate"): ("%r = arith.cmpi {}, %i, %i : i32", "%i: i32"),
    ("arith.cmpf", "predicate"): ("%r = arith.cmpf {}, %f, %f : f32", "%f: f32"),
    ("tt.atomic_rmw", "sem"): (
        "%r = tt.atomic_rmw add, {}, gpu, %p, %i, %c : (!tt.ptr<i32>, i32, i1) -> i32",
        "%p: !tt.ptr<i32>, %i: i32, %c: i1",
    ),
    ("tt.atomic_rmw", "scope"): (
        "%r = tt.atomic_rmw add, relaxed, {}, %p, %i, %c : (!tt.ptr<i32>, i32, i1) -> i32",
        "%p: !tt.ptr<i32>, %i: i32, %c: i1",
    ),
    ("tt.dot", "inputPrecision"): (
        "%r = tt.dot %t, %t, %t, inputPrecision = {} : "
        "tensor<16x16xf32> * tensor<16x16xf32> -> tensor<16x16xf32>",
        "%t: tensor<16x16xf32>",
    ),
    ("tt.fp_to_fp", "rounding"): (
        "%r = tt.fp_to_fp %t, rounding = {} : tensor<16xf32> -> tensor<16xf8E5M2>",
        "%t: tensor<16xf32>",
    ),
    ("tt.clampf", "propagateNan"): (
        "%r = tt.clampf %f, %f, %f, propagateNan = {} : f32",
        "%f: f32",
    ),
}


def keyword_cases():
    for (op, attribute), (line, arguments) in SYNTAX.items():
        keywords = KEYWORDS.get((op, attribute)) or KEYWORDS["", attribute]
        for keyword in keywords.values():
            yield pytest.param(op, attribute, keyword, line, arguments, id=f"{op}-{keyword}")


@pytest.mark.parametrize(("op", "attribute", "keyword", "line", "arguments"), list(keyword_cases()))
def test_enumerations_are_numbered_as_jaxlib_numbers_them(op, attribute, keyword, line, arguments):
    """The keyword that is written is the keyword that the graph has."""
    (found,) = [
        each for each in ops(kernel("    " + line.format(keyword), arguments)) if each.name == op
    ]
    assert found.attributes[attribute] == keyword


@pytest.mark.parametrize("keyword", list(KEYWORDS["tt.atomic_rmw", "atomic_rmw_op"].values()))
def test_atomic_updates_are_numbered_as_jaxlib_numbers_them(keyword):
    type_ = "f32" if keyword == "fadd" else "i32"
    line = (
        f"    %r = tt.atomic_rmw {keyword}, relaxed, gpu, %p, %v, %c : "
        f"(!tt.ptr<{type_}>, {type_}, i1) -> {type_}"
    )
    found = ops(kernel(line, f"%p: !tt.ptr<{type_}>, %v: {type_}, %c: i1"))[0]
    assert found.attributes["atomic_rmw_op"] == keyword


def test_types():
    assert type_of("tensor<4x2x!tt.ptr<i8>>") == TensorType((4, 2), PointerType(I8))
    assert type_of("!tt.ptr<!tt.ptr<i32>>") == PointerType(PointerType(I32))
    assert type_of("!tt.ptr<i32, 1>") == PointerType(I32)
    assert {name: type_of(name) for name in FLOAT_TYPES} == FLOAT_TYPES
    with pytest.raises(UnknownTypeError, match="`complex<f32>`"):
        type_of("complex<f32>")


@pytest.mark.parametrize(
    ("constant", "value"),
    [
        ("-3 : i32", -3),
        ("true", 1),
        ("0x7F800000 : f32", float("inf")),
        ("dense<0xFF80> : tensor<4xbf16>", float("-inf")),
        ("dense<[1, -2, 3, 0]> : tensor<4xi8>", (1, -2, 3, 0)),
        ("dense<[true, false]> : tensor<2xi1>", (1, 0)),
        ("dense<[1.5, -0.5]> : tensor<2xf32>", (1.5, -0.5)),
    ],
)
def test_constants(constant, value):
    (found, _) = ops(kernel(f"    %c = arith.constant {constant}"))
    assert found.attributes["value"] == value


def test_the_persons_own_line_is_the_innermost_outside_the_library():
    text = (
        'loc(callsite("/x/triton/language/standard.py":3:1 at '
        'callsite("y"("/home/p/helpers.py":7:5) at "z"("/home/p/kernel.py":9:2))))'
    )
    location, name = location_of(text)
    assert (location.file, location.line, location.column, name) == (
        "/home/p/helpers.py",
        7,
        5,
        "y",
    )
    assert location_of("loc(unknown)") == (None, "")


def test_what_jaxlib_has_no_syntax_for_is_read():
    found = ops(
        kernel(
            "    llvm.intr.assume %c : i1\n"
            "    %j = tt.cat %t, %t : tensor<4xf32> -> tensor<8xf32>\n"
            "    ttg.barrier local|global_read|global_write\n"
            "    %l = tt.load %p {cachePolicy = #tt.cache_policy<cache_modifier = ca, "
            "eviction_policy = evict_first>, isVolatile = true} : !tt.ptr<f32>",
            "%c: i1, %t: tensor<4xf32>, %p: !tt.ptr<f32>",
        )
    )
    assert [each.name for each in found] == [
        "llvm.intr.assume",
        "tt.cat",
        "ttg.barrier",
        "tt.load",
        "tt.return",
    ]
    assert found[3].attributes["isVolatile"] is True


def test_when_kernels_start_is_no_part_of_the_graph():
    text = "    tt.grid_dependency_wait\n    tt.grid_dependency_launch_dependents loc(unknown)"
    assert [each.name for each in ops(kernel(text, "%c: i1"))] == ["tt.return"]


@pytest.mark.parametrize(
    ("line", "operands", "result"),
    [
        ("%r = tt.atomic_load acquire, gpu, %p, %c : (!tt.ptr<i32>, i1) -> i32", 2, "i32"),
        (
            "%r = tt.atomic_load relaxed, cta, %ps, %cs : "
            "(tensor<4x!tt.ptr<i32>>, tensor<4xi1>) -> tensor<4xi32>",
            2,
            "tensor<4xi32>",
        ),
        ("tt.atomic_store release, gpu, %p, %i, %c : !tt.ptr<i32>", 3, None),
        ("tt.atomic_store relaxed, sys, %ps, %is, %cs : tensor<4x!tt.ptr<i32>>", 3, None),
        ("%r = tt.atomic_poll acquire, gpu, %p, %i : !tt.ptr<i32>, i32 -> i1", 2, "i1"),
        (
            "%r = tt.atomic_poll relaxed, sys, %ps, %is timeout %t : "
            "tensor<4x!tt.ptr<i32>>, tensor<4xi32> -> tensor<4xi1>",
            3,
            "tensor<4xi1>",
        ),
    ],
)
def test_atomic_reads_and_writes_are_read_with_what_their_syntax_leaves_out(line, operands, result):
    found = ops(
        kernel(
            f"    {line}",
            "%p: !tt.ptr<i32>, %i: i32, %c: i1, %t: i64, %ps: tensor<4x!tt.ptr<i32>>, "
            "%is: tensor<4xi32>, %cs: tensor<4xi1>",
        )
    )[0]
    words = line.removeprefix("%r = ").replace(",", " ").split()
    assert found.name == words[0]
    assert found.attributes == {"sem": words[1], "scope": words[2]}
    assert len(found.operands) == operands
    assert [str(each.type) for each in found.results] == ([result] if result else [])


def test_what_a_cache_should_do_is_no_part_of_the_graph():
    """Written as older and as newer Tritons do."""
    for hint in (
        " cacheModifier = ca evictionPolicy = evict_last",
        " {cachePolicy = #tt.cache_policy<cache_modifier = none, eviction_policy = evict_first>}",
    ):
        line = f"    %r = tt.load %p{hint} : !tt.ptr<f32>"
        assert not set(ops(kernel(line, "%p: !tt.ptr<f32>"))[0].attributes) - {"isVolatile"}


def test_an_op_that_the_graph_lacks_is_refused_at_its_line(tmp_path):
    source = tmp_path / "kernel.py"
    source.write_text("first line\nx = strange(y)\n", encoding="utf-8")
    line = f'    %r = "odd.op"(%i) : (i32) -> i32 loc("{source}":2:5)'
    with pytest.raises(TtirError, match=r"`odd\.op` is not supported: `x = strange") as caught:
        read_ttir(kernel(line, "%i: i32"))
    assert (caught.value.path, caught.value.line, caught.value.column) == (str(source), 2, 5)


def test_an_op_without_a_location_is_in_the_file_of_the_ir_itself(tmp_path):
    """Triton IR that was written by hand, or printed without locations."""
    path = tmp_path / "kernel.ttir"
    good = "    %r = arith.addi %i, %i : i32"
    elsewhere = '    %s = arith.addi %i, %i : i32 loc("k.py":9:1)'
    path.write_text(kernel(f"{good}\n{elsewhere}", "%i: i32"), encoding="utf-8")
    module = read_ttir(path.read_text(encoding="utf-8"), str(path))
    assert (module.kernel.location.file, module.kernel.location.line) == (str(path), 2)
    first, second, *_ = walk(module.kernel.body)
    assert (first.location.file, first.location.line) == (str(path), 3)
    assert first.location.text == good.strip()
    assert (second.location.file, second.location.line) == ("k.py", 9)
    path.write_text(kernel('    %r = "odd.op"(%i) : (i32) -> i32', "%i: i32"), encoding="utf-8")
    with pytest.raises(TtirError, match=r"`odd\.op` is not supported") as caught:
        read_ttir(path.read_text(encoding="utf-8"), str(path))
    assert (caught.value.path, caught.value.line) == (str(path), 3)


def test_an_attribute_that_may_matter_is_refused():
    line = "    %r = tt.splat %i {odd = 3 : i32} : i32 -> tensor<4xi32>"
    with pytest.raises(TtirError, match="`odd`"):
        read_ttir(kernel(line, "%i: i32"))


def test_text_that_is_no_triton_ir_is_said():
    with pytest.raises(InputError, match="cannot be parsed"):
        read_ttir("module { tt.func @k( }")
    with pytest.raises(InputError, match="0 public functions"):
        read_ttir("module { }")


def test_a_loop_of_branches_is_refused():
    text = kernel("    cf.br ^bb1\n  ^bb1:\n    cf.cond_br %c, ^bb1, ^bb2\n  ^bb2:", "%c: i1")
    with pytest.raises(TtirError, match="no early return"):
        read_ttir(text)


NAMED = (
    'module {\n  tt.func public @scale(%x: !tt.ptr<f32> loc("x"("k.py":2:1)), '
    '%n: i64 loc("n"("k.py":2:1))) {\n    tt.return loc("k.py":3:1)\n  } loc("k.py":2:1)\n}\n'
)


def test_a_kernel_given_as_triton_ir_is_launched_by_the_names_in_it():
    arguments = [parse_argument("n=1", buffer=1), parse_argument("x=f32[8]", buffer=0)]
    launch = bind_graph(read_ttir(NAMED), arguments, grid=(2, 1, 1), path="k.ttir")
    assert [each.name for each in launch.arguments] == ["x", "n"]
    assert launch.arguments[1] == ScalarArgument(name="n", dtype="i64", value=1)
    assert launch.kernel == KernelSource(function="scale", file="k.py", line=2)


@pytest.mark.parametrize(
    ("given_arguments", "part"),
    [
        (["x=f32[8]"], "is not given `n`, of the type `i64`"),
        (["x=f16[8]", "n=1"], "`x` is `ptr<f32>` in the Triton IR and is given `ptr<f16>`"),
        (["x=f32[8]", "n=1", "m=2"], "no parameter `m`"),
        (["x=3", "n=1"], "`x` is `ptr<f32>`"),
        (["x=f32[8]", "n=f32[8]"], "`n` is `i64`"),
        (["x=f32[8]", "n=none"], "given `a constant`"),
        (["x=f32[8]", "n=1.5"], "integer type `i64`"),
    ],
)
def test_arguments_that_do_not_fit_the_triton_ir_are_said(given_arguments, part):
    arguments = [parse_argument(text, buffer=at) for at, text in enumerate(given_arguments)]
    with pytest.raises(LaunchError, match=re.escape(part)):
        bind_graph(read_ttir(NAMED), arguments, grid=(1, 1, 1), path="k.ttir")


# A program is a list of statements: a number is added to a running total that every store writes,
# "store" writes the total, "return" ends the program, and a triple branches on a bit of the input.
LEAF = st.one_of(st.integers(1, 9), st.just("store"), st.just("return"))


def branch(inner):
    return st.tuples(st.integers(0, 3), inner, inner)


STATEMENTS = st.recursive(
    st.lists(LEAF, max_size=3),
    lambda inner: st.lists(st.one_of(LEAF, branch(inner)), max_size=4),
    max_leaves=12,
)


def expected(statements, bits):
    """What the program leaves in memory: the total at each store, in order."""
    total, stored = 0, []
    pending = [iter(statements)]
    while pending:
        statement = next(pending[-1], None)
        if statement is None:
            pending.pop()
        elif statement == "return":
            return stored
        elif statement == "store":
            stored.append(total)
        elif isinstance(statement, int):
            total += statement
        else:
            bit, yes, no = statement
            pending.append(iter(yes if bits >> bit & 1 else no))
    return stored


class Blocks:
    """Writes the program as blocks with branches, the total and the place passed as arguments."""

    def __init__(self):
        self.lines = []
        self.count = 0

    def fresh(self):
        self.count += 1
        return self.count

    def write(self, statements, total, place, after):
        """The lines of `statements`, then a branch to the block `after`, or a return."""
        for index, statement in enumerate(statements):
            new = f"%v{self.fresh()}"
            if statement == "return":
                self.lines.append("    tt.return")
                return
            if statement == "store":
                self.lines += [
                    f"    {new}p = tt.addptr %out, {place} : !tt.ptr<i32>, i32",
                    f"    tt.store {new}p, {total} : !tt.ptr<i32>",
                    f"    {new}o = arith.constant 1 : i32",
                    f"    {new} = arith.addi {place}, {new}o : i32",
                ]
                place = new
            elif isinstance(statement, int):
                self.lines += [
                    f"    {new}c = arith.constant {statement} : i32",
                    f"    {new} = arith.addi {total}, {new}c : i32",
                ]
                total = new
            else:
                bit, yes, no = statement
                first, second, rest = (self.fresh() for _ in range(3))
                self.lines += [
                    f"    cf.cond_br %bit{bit}, ^bb{first}, ^bb{second}",
                    f"  ^bb{first}:",
                ]
                self.write(yes, total, place, rest)
                self.lines.append(f"  ^bb{second}:")
                self.write(no, total, place, rest)
                self.lines.append(f"  ^bb{rest}(%t{rest}: i32, %q{rest}: i32):")
                self.write(statements[index + 1 :], f"%t{rest}", f"%q{rest}", after)
                return
        end = f"cf.br ^bb{after}({total}, {place} : i32, i32)" if after else "tt.return"
        self.lines.append(f"    {end}")


@settings(max_examples=60, deadline=None)
@given(STATEMENTS, st.integers(0, 15))
def test_branches_of_early_returns_become_structured(statements, bits):
    """Any nesting of branches and returns means the same after it, for any path taken."""
    blocks = Blocks()
    for bit in range(4):
        blocks.lines += [f"    %m{bit} = arith.constant {1 << bit} : i32"]
        blocks.lines += [f"    %a{bit} = arith.andi %bits, %m{bit} : i32"]
        blocks.lines += [f"    %bit{bit} = arith.cmpi ne, %a{bit}, %zero : i32"]
    blocks.write(statements, "%zero", "%zero", None)
    zero = "    %zero = arith.constant 0 : i32"
    text = "\n".join(
        [
            "module {",
            "  tt.func public @k(%out: !tt.ptr<i32>, %bits: i32) {",
            zero,
            *blocks.lines,
            "  }",
            "}",
        ]
    )
    module = read_ttir(text)
    verify(module)
    out = evaluate(module, [np.full(64, -1, np.int32), bits], (1,)).arrays[0]
    stored = expected(statements, bits)
    assert out[: len(stored)].tolist() == stored
    assert (out[len(stored) :] == -1).all()

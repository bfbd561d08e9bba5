"""Each rule of a legal graph, broken once: the message names the op and the kernel's line."""

import pytest
from test_evaluator import MATMUL, VECTOR_ADD

from translators.graph.errors import GraphError
from translators.graph.graph import Function, Module, make_module, make_op, make_region
from translators.graph.location import SourceLocation
from translators.graph.ops.refused import REFUSED
from translators.graph.reader import read_module
from translators.graph.types import F32, I1, I32, TensorType
from translators.graph.verifier import problems, verify

KERNEL = """
kernel @"k"(%p: ptr<f32>, %i: i32, %f: f32, %b: i1) {
  BODY
  tt.return()
}
"""

REDUCE = """%t = arith.constant() {value = 1.0} : tensor<4xf32>
  %r = tt.reduce(%t) {axis = 0} : f32 {
  ^(%x: f32, %y: f32):
    BODY
  }"""


def kernel(body: str) -> Module:
    return read_module(KERNEL.replace("BODY", body))


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("tt.unknown()", "`tt.unknown` is refused: it is no op of the graph"),
        ("cf.br()", "`cf.br` has no place in a graph: control flow is structured"),
        ("%x = arith.addi(%i, %f) : i32", "takes operands of one type, not `i32` and `f32`"),
        ("%x = arith.addi(%f, %f) : f32", "takes integers, not `f32`"),
        ("%x = arith.addf(%i, %i) : i32", "takes floats, not `i32`"),
        ("%x = arith.addi(%i, %i) : i64", "gives (`i32`), but its results are (`i64`)"),
        ("%x = arith.addi(%i) : i32", "takes 2 operands, not 1"),
        ("%x = arith.cmpi(%i, %i) : i1", "lacks its attribute `predicate`"),
        ('%x = arith.cmpi(%i, %i) {predicate = "lt"} : i1', "that must be one of 'eq', 'ne'"),
        ('%x = arith.addi(%i, %i) {tt.divisibility = [1.5]} : i32', "must hold integers, not 1.5"),
        ("%x = arith.cmpi(%i, %i) {predicate = 2} : i1", "must be of type `str`, not `int`"),
        ("%x = arith.addi(%i, %i) {nsw = true} : i32", "an attribute `nsw` that it cannot have"),
        ("%x = arith.constant() {value = 1.5} : i32", "holds 1.5, which is no value of `i32`"),
        ("%x = arith.constant() {value = 128} : i8", "holds 128, which is no value of `i8`"),
        ("%x = arith.constant() {value = 1} : f32", "holds 1, which is no float"),
        ("%x = arith.constant() {value = [1, 2]} : tensor<3xi32>", "holds 3 numbers or one, not 2"),
        ("%x = arith.constant() {value = 0.1} : bf16", "holds [0.1], which is no value of `bf16`"),
        ("%x = arith.constant() {value = [1.0, 1e300]} : tensor<2xf32>", "holds [1e+300], which"),
        ("%x = tt.load(%i) : i32", "takes pointers, not `i32`"),
        ("%x = tt.load(%p, %i) : f32", "takes a mask of the shape of `ptr<f32>`, not `i32`"),
        ("%x = tt.load(%p, %b, %i) : f32", "replaces masked elements of `f32` by `i32`"),
        ("tt.store(%p, %i)", "stores `f32`, not `i32`"),
        ("%x = tt.addptr(%p, %f) : ptr<f32>", "takes integers, not `f32`"),
        ('%x = tt.atomic_rmw(%p, %f) {atomic_rmw_op = "add"} : f32', "cannot `add` elements"),
        ("%x = tt.bitcast(%f) : i64", "keeps the number of bits, got `f32` to `i64`"),
        ("%x = tt.bitcast(%p) : i64", "makes no pointers of numbers"),
        ("%x = tt.int_to_ptr(%i) : ptr<f32>", "takes `i64` and gives pointers"),
        ("%x = tt.splat(%f) : tensor<4xi32>", "gives (`tensor<4xf32>`), but"),
        ('%x = tt.extern_elementwise(%f) {symbol = "__nv_j0f"} : f32', "calls `__nv_j0f`, whose"),
        ("tt.return(%i)", "has a region with `tt.return` before its end"),
        ("scf.yield()", "has a region with `scf.yield` before its end"),
        ("scf.if(%i) {\n    scf.yield()\n  }", "takes `i1`, not `i32`"),
        ("scf.if(%b) {\n  }", "`scf.if` has a region without ops"),
        ("scf.if(%b) {\n    %x = arith.addi(%i, %i) : i32\n  }", "ends in `arith.addi`"),
        ("%x = scf.if(%b) : i32 {\n    scf.yield(%i)\n  }", "gives results in one case only"),
        (
            "%x = scf.if(%b) : i32 {\n    scf.yield(%i)\n  } {\n    scf.yield(%f)\n  }",
            "takes (`i32`) from its second region, which gives (`f32`)",
        ),
        ("scf.if(%b) {\n    tt.return(%i)\n  }", "gives (`i32`) where the function gives ()"),
        ("%x = scf.for(%i, %i, %i, %f) : f32 {\n  ^(%j: i32):\n    scf.yield()\n  }", "enters its"),
        ("scf.for(%i, %i, %f) {\n  ^(%j: i32):\n    scf.yield()\n  }", "operands of one type"),
        ("scf.for(%f, %f, %f) {\n  ^(%j: f32):\n    scf.yield()\n  }", "must be a scalar integer"),
        (
            "%x = scf.while(%i) : f32 {\n  ^(%j: i32):\n    scf.condition(%b, %j)\n  } {\n"
            "  ^(%g: f32):\n    scf.yield(%i)\n  }",
            "gives (`f32`), but its condition passes on (`i32`)",
        ),
        ("scf.if(%b)" + " {\n    scf.yield()\n  }" * 3, "has 3 regions instead of 1 or 2"),
        ('tt.call(%i) {callee = "g"}', "calls `g`, which the module lacks"),
        ('tt.call(%i) {callee = "k"}', "calls `k` with (`i32`), which takes"),
        ("%x = tt.dot(%f, %f, %f) : f32", "takes a tensor, not `f32`"),
        (REDUCE.replace("BODY", "tt.reduce.return(%i)"), "from its region, which gives (`i32`)"),
        (
            REDUCE.replace("BODY", "scf.if(%b) {\n    tt.return()\n  }\n  tt.reduce.return(%x)"),
            "cannot leave a combination of elements",
        ),
    ],
)  # fmt: skip
def test_a_broken_rule_is_told(body: str, message: str) -> None:
    found = [each.message for each in problems(kernel(body))]
    assert any(message in each for each in found), found


@pytest.mark.parametrize("text", [VECTOR_ADD, MATMUL.replace("TYPE", "f16")])
def test_a_legal_module_has_no_problem(text: str) -> None:
    assert list(problems(read_module(text))) == []


def test_every_op_may_carry_hints() -> None:
    verify(kernel("%x = arith.addi(%i, %i) {tt.divisibility = [16]} : i32"))


def test_the_error_carries_the_kernels_line() -> None:
    text = '%x = arith.addi(%i, %f) : i32 at "my.py":7:3 "x = i + f"'
    with pytest.raises(GraphError) as caught:
        verify(kernel(text))
    assert str(caught.value).startswith("my.py:7:3: `arith.addi` takes operands of one type")


def test_a_value_is_visible_in_what_follows_and_what_is_inside_only() -> None:
    """Text cannot say otherwise of one region, so that these are built by hand."""
    condition = make_op("arith.constant", [], [I1], attributes={"value": 1})
    inner = make_region()
    hidden = make_op("arith.constant", [], [F32], attributes={"value": 1.0})
    inner.ops.extend([hidden, make_op("scf.yield")])
    branch = make_op("scf.if", [condition.result], regions=[inner])
    use = make_op(
        "math.exp",
        [hidden.result],
        [F32],
        location=SourceLocation(file="f.py", line=3),
    )
    body = make_region()
    body.ops.extend([condition, branch, use, make_op("tt.return")])
    found = list(problems(make_module([Function(name="k", body=body)])))
    message = "`math.exp` takes a value as operand 0 that is not visible there"
    assert [each.message for each in found] == [message]
    assert found[0].location == SourceLocation(file="f.py", line=3)
    body.ops[1:2] = []
    assert len(list(problems(make_module([Function(name="k", body=body)])))) == 1


def test_an_op_or_region_stands_in_one_place_only() -> None:
    condition = make_op("arith.constant", [], [I1], attributes={"value": 1})
    inner = make_region()
    inner.ops.append(make_op("scf.yield"))
    twice = make_op("scf.if", [condition.result], regions=[inner, inner])
    body = make_region()
    body.ops.extend([condition, twice, make_op("tt.return")])
    found = [each.message for each in problems(make_module([Function(name="k", body=body)]))]
    assert "`scf.if` has a region that occurs twice" in found
    body.ops[1] = condition
    found = [each.message for each in problems(make_module([Function(name="k", body=body)]))]
    assert "`arith.constant` occurs twice" in found


def test_a_kernel_takes_no_tensors_and_gives_nothing() -> None:
    body = make_region([TensorType((4,), I32)])
    body.ops.append(make_op("tt.return"))
    kernel = Function(name="k", body=body, result_types=(I32,))
    found = [each.message for each in problems(make_module([kernel]))]
    assert "function `k` is a kernel and gives results" in found
    assert "function `k` is a kernel and takes a tensor, `tensor<4xi32>`" in found


def test_functions_do_not_call_themselves_by_any_way() -> None:
    text = """
    func @"a"() {
      tt.call() {callee = "b"}
      tt.return()
    }
    func @"b"() {
      tt.call() {callee = "a"}
      tt.return()
    }
    kernel @"k"() {
      tt.call() {callee = "a"}
      tt.call() {callee = "b"}
      tt.return()
    }
    """
    found = [each.message for each in problems(read_module(text))]
    assert found == ["`tt.call` of `a` leads back into itself"]


def test_a_missing_kernel_is_told() -> None:
    body = make_region()
    body.ops.append(make_op("tt.return"))
    module = make_module([Function(name="k", body=body)], entry="other")
    assert [each.message for each in problems(module)] == ["no function is named `other`"]


@pytest.mark.parametrize("name", REFUSED)
def test_a_refused_op_says_why(name: str) -> None:
    body = make_region()
    body.ops.extend([make_op(name), make_op("tt.return")])
    found = [each.message for each in problems(make_module([Function(name="k", body=body)]))]
    assert found == [f"`{name}` is refused: {REFUSED[name]}"]

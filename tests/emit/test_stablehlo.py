"""StableHLO text says what it takes and gives, and computes what the JAX function computes."""

import re

import pytest

pytest.importorskip("jax")

import jax
import numpy as np
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo

from hlo_tools.errors import InputError
from translators.emit.emission import UnsupportedError
from translators.emit.jax import JaxFunction
from translators.emit.stablehlo import (
    MODULE_SEPARATOR,
    ValueType,
    emit_stablehlo,
    load_stablehlo,
)
from translators.graph.location import SourceLocation
from translators.translation import load

IMPORTS = "import jax\nimport jax.numpy as jnp\nfrom jax import lax\n\n"


def function(body, parameters, results, *, scalars=(), wide=False, name="kernel"):
    """A function as it would be emitted; `body` is the expression that it gives."""
    keywords = "".join(f", {each}=1.5" for each in scalars)
    marker = ", *" if scalars else ""
    header = f"def {name}({', '.join(parameters)}{marker}{keywords}):"
    return JaxFunction(
        name=name,
        source=f"{IMPORTS}{header}\n    return {body}\n",
        parameters=tuple(parameters),
        scalars=tuple(scalars),
        results=tuple(results),
        wide=wide,
        notes=(),
    )


def types(**texts):
    """`f(x="float32[4,8]")`: what each value holds."""
    found = {}
    for name, text in texts.items():
        dtype, shape = re.fullmatch(r"(\w+)\[([\d,]*)\]", text).groups()
        found[name] = ValueType(
            dtype=dtype, shape=tuple(map(int, shape.split(",") if shape else ()))
        )
    return found


def drawn(type_, seed=0):
    """Random contents of a type."""
    rng = np.random.default_rng(seed)
    dtype = jax.numpy.dtype(type_.dtype)
    if dtype.kind in "iu":
        return rng.integers(0, 100, type_.shape).astype(dtype)
    return np.asarray(rng.standard_normal(type_.shape)).astype(dtype)


def bits(array):
    return np.asarray(array).tobytes()


CASES = {
    "elementwise": (
        function("x * 2 + y", ["x", "y"], ["out"]),
        types(x="float32[5,7]", y="float32[7]"),
    ),
    "several results": (
        function("(x + 1, y, x > y)", ["x", "y"], ["a", "b", "c"]),
        types(x="int32[6]", y="int32[6]"),
    ),
    "what StableHLO composes": (
        function("lax.erf(x) + lax.top_k(x, 4)[0].sum()", ["x"], ["out"]),
        types(x="bfloat16[3,9]"),
    ),
    "scans": (
        function("(jnp.cumsum(x), jnp.sort(x))", ["x"], ["out", "sorted"]),
        types(x="int32[37]"),
    ),
    "products of matrices": (
        function(
            "lax.dot(a, b, precision='highest', preferred_element_type=jnp.float32)",
            ["a", "b"],
            ["c"],
        ),
        types(a="float16[8,16]", b="float16[16,4]"),
    ),
    "loops": (
        function("lax.fori_loop(0, 5, lambda i, total: total * x + i, x)", ["x"], ["x"]),
        types(x="float32[4]"),
    ),
    "scalars": (
        function("x * a - b", ["x"], ["out"], scalars=["a", "b"]),
        types(x="float32[4]", a="float32[]", b="float32[]"),
    ),
    "64 bits": (
        function("(x / 3, n + 2**40)", ["x", "n"], ["x", "n"], wide=True),
        types(x="float64[4]", n="int64[4]"),
    ),
    "narrow types": (
        function("(x.astype(jnp.float32), n ^ m)", ["x", "n", "m"], ["out", "n"]),
        types(x="float8_e4m3fn[4]", n="uint8[4]", m="uint8[4]"),
    ),
    "no inputs": (function("jnp.arange(5)", [], ["out"]), {}),
    "names of values that the printer uses": (
        function("jnp.where(c > 0, c, cst) + arg0", ["c", "cst", "arg0"], ["c"]),
        types(c="float32[3]", cst="float32[3]", arg0="float32[3]"),
    ),
}


@pytest.fixture(params=CASES.values(), ids=CASES.keys())
def case(request):
    return request.param


def test_the_loaded_text_computes_what_the_function_computes(case):
    emitted, known = case
    text = emit_stablehlo(emitted, load(emitted), known)
    arrays = [drawn(known[name], seed) for seed, name in enumerate(emitted.parameters)]
    scalars = {name: drawn(known[name], 9) for name in emitted.scalars}
    with jax.enable_x64(emitted.wide):
        wanted = jax.jit(load(emitted))(*arrays, **scalars)
        found = load_stablehlo(text).call(*arrays, *scalars.values())
    assert jax.tree.structure(found) == jax.tree.structure(wanted)
    for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True):
        assert one.dtype == other.dtype
        assert bits(one) == bits(other)


def test_the_text_is_for_other_platforms_too(case):
    """What a TPU would run is lowered from the same text."""
    emitted, known = case
    exported = load_stablehlo(emit_stablehlo(emitted, load(emitted), known))
    with jax.enable_x64(emitted.wide):
        inputs = [jax.ShapeDtypeStruct(each.shape, each.dtype) for each in exported.in_avals]
        traced = jax.jit(exported.call).trace(*inputs)
        for platform in ("tpu", "cpu", "cuda"):
            assert "func" in traced.lower(lowering_platforms=(platform,)).as_text()


def test_the_text_is_stablehlo_and_nothing_else(case):
    emitted, known = case
    with jax.interpreters.mlir.make_ir_context():
        module = ir.Module.parse(emit_stablehlo(emitted, load(emitted), known))
        pending, names = [module.operation], set()
        while pending:
            operation = pending.pop()
            names.add(operation.name)
            for region in operation.regions:
                pending += [each.operation for block in region for each in block]
        assert {name.partition(".")[0] for name in names} <= {"builtin", "func", "stablehlo"}
        assert "stablehlo.custom_call" not in names
        # A reader of the least version can read it.
        version = stablehlo.get_version_from_compatibility_requirement(
            stablehlo.StablehloCompatibilityRequirement.WEEK_12
        )
        assert stablehlo.serialize_portable_artifact(module, version)


def test_inputs_and_outputs_are_documented_and_named():
    emitted = function(
        "(x_ptr * scale, jnp.ones(3))",
        ["x_ptr"],
        ["x_ptr", "ones"],
        scalars=["scale"],
        name="twice",
    )
    known = types(x_ptr="float32[3]", scale="float32[]")
    place = SourceLocation(file="/home/me/kernels.py", line=12)
    text = emit_stablehlo(emitted, load(emitted), known, place)
    head = [line for line in text.splitlines() if line.startswith("//")]
    assert head[0] == "// `twice`, translated from the Triton kernel at kernels.py:12."
    inputs, outputs = (
        head.index("// Inputs of `main`, in order:"),
        head.index("// Outputs, in order:"),
    )
    assert head[inputs + 1 : outputs] == [
        "//   x_ptr: float32[3]",
        "//   scale: float32[], a number",
    ]
    assert head[outputs + 1 :] == [
        "//   x_ptr: float32[3], its new contents; what it held is an input",
        "//   ones: float32[3], its new contents",
    ]
    assert "@main(%x_ptr: tensor<3xf32>, %scale: tensor<f32>)" in text
    assert '{jax.result_info = "x_ptr"}' in text
    assert '{jax.result_info = "ones"}' in text
    assert "module @twice" in text
    assert load_stablehlo(text).fun_name == "twice"


def test_emitting_twice_gives_the_same_text():
    emitted, known = CASES["what StableHLO composes"]
    texts = {emit_stablehlo(emitted, load(emitted), known) for _ in range(2)}
    assert len(texts) == 1


def test_what_only_one_platform_has_is_refused():
    emitted = function("jnp.linalg.eigh(x)[1]", ["x"], ["out"])
    place = SourceLocation(file="kernels.py", line=3)
    with pytest.raises(UnsupportedError, match="no part of StableHLO") as caught:
        emit_stablehlo(emitted, load(emitted), types(x="float32[4,4]"), place)
    assert (caught.value.path, caught.value.line) == ("kernels.py", 3)


def test_one_of_several_modules_is_loaded_by_name():
    texts = []
    for name, body in (("double", "x * 2"), ("triple", "x * 3")):
        emitted = function(body, ["x"], ["out"], name=name)
        texts.append(emit_stablehlo(emitted, load(emitted), types(x="float32[2]")))
    text = MODULE_SEPARATOR.join(texts)
    x = np.ones(2, np.float32)
    assert load_stablehlo(text, "double").call(x).tolist() == [2, 2]
    assert load_stablehlo(text, "triple").call(x).tolist() == [3, 3]
    with pytest.raises(InputError, match="has 2 modules, not one"):
        load_stablehlo(text)
    with pytest.raises(InputError, match="0 modules named `half`"):
        load_stablehlo(text, "half")


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("module {", "cannot be parsed"),
        ("def f(): pass", "cannot be parsed"),
        ("module { func.func @other() { return } }", "no function `main`"),
        (
            "func.func @main(%x: tensor<?xf32>) -> tensor<?xf32> { return %x : tensor<?xf32> }",
            "no fixed shape",
        ),
        (
            "func.func @main(%x: tensor<2xcomplex<f32>>) -> tensor<2xcomplex<f32>>"
            " { return %x : tensor<2xcomplex<f32>> }",
            "no element type",
        ),
        ("func.func @main(%x: i32) -> i32 { return %x : i32 }", "no array"),
    ],
)
def test_text_that_cannot_be_loaded_is_refused(text, part):
    with pytest.raises(InputError, match=part):
        load_stablehlo(text)


def test_a_module_from_elsewhere_is_loaded():
    """Text that we did not write, without a name or comments."""
    text = """
      func.func @main(%x: tensor<2x3xf32>, %n: tensor<ui8>) -> (tensor<3x2xf32>, tensor<ui8>) {
        %0 = stablehlo.transpose %x, dims = [1, 0] : (tensor<2x3xf32>) -> tensor<3x2xf32>
        return %0, %n : tensor<3x2xf32>, tensor<ui8>
      }"""
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    turned, same = load_stablehlo(text).call(x, np.uint8(7))
    assert turned.tolist() == x.T.tolist()
    assert same == 7


def test_a_loaded_module_has_no_derivative_rather_than_a_wrong_one():
    text = """
    module @double {
      func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
        %y = stablehlo.add %x, %x : tensor<4xf32>
        return %y : tensor<4xf32>
      }
    }
    """
    import jax
    import jax.numpy as jnp

    exported = load_stablehlo(text)
    np.testing.assert_array_equal(exported.call(jnp.ones(4, jnp.float32)), 2.0)
    with pytest.raises(ValueError, match=r"(?i)vjp"):
        jax.grad(lambda x: exported.call(x).sum())(jnp.ones(4, jnp.float32))

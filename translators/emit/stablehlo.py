"""A function on JAX arrays as portable StableHLO text.

The text is one MLIR module, whose function `main` takes the arrays that the emitted JAX function
takes, in the same order and under the kernel's names, then its scalars as arrays of no dimension,
and gives the new contents of the arrays that the kernel writes. A comment at its head says what
they are. It is lowered for TPUs; as it holds StableHLO and nothing else, other platforms run it
too.

`load_stablehlo` makes a `jax.export.Exported` of it:

    load_stablehlo(Path("add.mlir").read_text()).call(x, y)
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from hlo_tools.errors import InputError
from translators.emit.emission import UnsupportedError
from translators.emit.jax import JaxFunction
from translators.graph.location import SourceLocation

MODULE_SEPARATOR = "// -----\n"
"""What MLIR's own tools put between the modules of one file."""

_PLATFORM = "tpu"
_ARGUMENT = re.compile(r"%arg(\d+)\b")
_VALUE = re.compile(r"%[\w.$-]+")
_OUTSIDE_SSA_NAMES = re.compile(r"[^\w.]", re.ASCII)
# MLIR's spelling of a float -> NumPy's. Integers are spelt `i32`, `ui32` and `i1`.
_FLOATS = {
    "f64": "float64",
    "f32": "float32",
    "f16": "float16",
    "bf16": "bfloat16",
    "f8E4M3FN": "float8_e4m3fn",
    "f8E5M2": "float8_e5m2",
    "f8E4M3FNUZ": "float8_e4m3fnuz",
    "f8E5M2FNUZ": "float8_e5m2fnuz",
    "f8E4M3B11FNUZ": "float8_e4m3b11fnuz",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueType:
    """What an input holds.

    Attributes:
      dtype: the element type as `jax.numpy` names it, such as `float32`.
      shape: elements a dimension; empty for a scalar.
    """

    dtype: str
    shape: tuple[int, ...]

    def __str__(self) -> str:
        """As in `float32[4, 8]`."""
        return f"{self.dtype}{list(self.shape)}"


def emit_stablehlo(
    function: JaxFunction,
    call: Callable[..., Any],
    types: Mapping[str, ValueType],
    location: SourceLocation | None = None,
) -> str:
    """Lowers an emitted function.

    Args:
      function: what was emitted.
      call: the function itself, loaded from its source.
      types: what its parameters and scalars hold, by name.
      location: where the kernel is defined.

    Raises:
      UnsupportedError: part of the function is no StableHLO.
    """
    import jax
    from jax.extend.mlir import deserialize_portable_artifact, serialize_portable_artifact
    from jaxlib.mlir import ir

    arrays = [types[name] for name in function.parameters]
    scalars = [types[name] for name in function.scalars]

    def flat(*values: Any) -> Any:
        given = values[: len(arrays)]
        return call(*given, **dict(zip(function.scalars, values[len(arrays) :], strict=True)))

    with jax.enable_x64(function.wide):
        inputs = [jax.ShapeDtypeStruct(each.shape, each.dtype) for each in (*arrays, *scalars)]
        lowered = (
            jax.jit(flat, keep_unused=True).trace(*inputs).lower(lowering_platforms=(_PLATFORM,))
        )
    module = lowered.compiler_ir("stablehlo")
    with module.context:
        _refuse_calls(module, function, location)
        try:
            artifact = serialize_portable_artifact(module, _oldest_reader(), True)
        except ir.MLIRError as error:
            reason = " ".join(str(error).split())
            raise UnsupportedError(
                f"`{function.name}` has no portable form in StableHLO: {reason}", location
            ) from error
        portable = deserialize_portable_artifact(artifact)
        _name_parts(portable, function)
        text = portable.operation.get_asm()
        outputs = [_value_type(each) for each in _main_type(portable).results]
    head = "".join(
        f"// {line}".rstrip() + "\n" for line in _head(function, types, outputs, location)
    )
    text = head + _with_names(text, (*function.parameters, *function.scalars))
    _parse(text)
    return text


def load_stablehlo(text: str, name: str | None = None) -> Any:
    """Makes a `jax.export.Exported` of the text of a module.

    Its `call` takes the arrays, then the scalars, by position, and gives one array or a tuple of
    arrays. Where 64-bit types are among them it has to be called within `jax.enable_x64(True)`.

    Args:
      text: as `emit_stablehlo` writes it, or several such with `MODULE_SEPARATOR` between them.
      name: the name of the module where there are several.

    Raises:
      InputError: the text is no StableHLO, has no function `main`, or no module of that name.
    """
    import jax
    import jax.numpy as jnp
    from jax.extend.mlir import serialize_portable_artifact

    module = _chosen(text, name)
    with module.context:
        artifact = serialize_portable_artifact(module, _oldest_reader(), True)
        inputs = [_value_type(each) for each in _main_type(module).inputs]
        outputs = [_value_type(each) for each in _main_type(module).results]

    def same_types(*values: Any) -> Any:
        results = tuple(jnp.zeros(each.shape, each.dtype) for each in outputs)
        return results[0] if len(results) == 1 else results

    same_types.__name__ = _module_name(module)
    # JAX makes such an object of a function only, and then another module can take its place. The
    # platform is not looked at in a call, since StableHLO runs on any.
    with jax.enable_x64(True):
        exported = jax.export.export(
            jax.jit(same_types, keep_unused=True),
            platforms=(jax.default_backend(),),
            disabled_checks=[jax.export.DisabledSafetyCheck.platform()],
        )(*(jax.ShapeDtypeStruct(each.shape, each.dtype) for each in inputs))
    # What JAX would differentiate is the stand-in, whose derivatives are not the module's.
    return replace(exported, mlir_module_serialized=artifact, _get_vjp=None)


def _oldest_reader() -> str:
    """The version of StableHLO that readers must have at least: what was current 12 weeks ago."""
    from jaxlib.mlir.dialects import stablehlo

    requirement = stablehlo.StablehloCompatibilityRequirement.WEEK_12
    version: str = stablehlo.get_version_from_compatibility_requirement(requirement)
    return version


def _refuse_calls(module: Any, function: JaxFunction, location: SourceLocation | None) -> None:
    """Refuses calls of what only some platforms have.

    Raises:
      UnsupportedError: there is one.
    """
    pending = [module.operation]
    while pending:
        operation = pending.pop()
        if operation.name == "stablehlo.custom_call":
            target = operation.attributes["call_target_name"].value
            raise UnsupportedError(
                f"`{function.name}` calls `{target}`, which is no part of StableHLO", location
            )
        for region in operation.regions:
            pending += [each.operation for block in region.blocks for each in block.operations]


def _name_parts(module: Any, function: JaxFunction) -> None:
    """Names the module and its results, and drops what only JAX reads."""
    from jaxlib.mlir import ir

    attributes = module.operation.attributes
    for name in [_attribute_name(each) for each in attributes]:
        if "." in name:
            del attributes[name]
    attributes["sym_name"] = ir.StringAttr.get(function.name)
    results = [
        ir.DictAttr.get({"jax.result_info": ir.StringAttr.get(name)}) for name in function.results
    ]
    _main(module).attributes["res_attrs"] = ir.ArrayAttr.get(results)


def _attribute_name(attribute: Any) -> str:
    """Iterating over attributes gives names in newer versions, pairs in older ones."""
    return attribute if isinstance(attribute, str) else attribute.name


def _main(module: Any) -> Any:
    for each in module.body.operations:
        if each.operation.name == "func.func" and each.attributes["sym_name"].value == "main":
            return each.operation
    raise InputError("the StableHLO has no function `main`")


def _main_type(module: Any) -> Any:
    return _main(module).attributes["function_type"].value


def _module_name(module: Any) -> str:
    attributes = module.operation.attributes
    return str(attributes["sym_name"].value) if "sym_name" in attributes else "main"


def _head(
    function: JaxFunction,
    types: Mapping[str, ValueType],
    outputs: Sequence[ValueType],
    location: SourceLocation | None,
) -> Iterator[str]:
    place = "" if location is None else f" at {Path(location.file).name}:{location.line}"
    yield f"`{function.name}`, translated from the Triton kernel{place}."
    yield f"For readers of StableHLO {_oldest_reader()} and later."
    yield ""
    yield "Inputs of `main`, in order:"
    for name in function.parameters:
        yield f"  {name}: {types[name]}"
    for name in function.scalars:
        yield f"  {name}: {types[name]}, a number"
    yield "Outputs, in order:"
    for name, type_ in zip(function.results, outputs, strict=True):
        in_place = "; what it held is an input" if name in function.parameters else ""
        yield f"  {name}: {type_}, its new contents{in_place}"


def _with_names(text: str, names: Sequence[str]) -> str:
    """The text with the arguments of `main` under the names of what they are."""
    start = text.index("func.func public @main(")
    end = text.find("\n  }\n", start)
    main = text[start:end]
    taken = set(_VALUE.findall(main))
    chosen: dict[str, str] = {}
    for index, name in enumerate(names):
        wanted = "%" + _OUTSIDE_SSA_NAMES.sub("_", name)
        if wanted not in taken:
            chosen[f"%arg{index}"] = wanted
            taken.add(wanted)
    main = _ARGUMENT.sub(lambda match: chosen.get(match[0], match[0]), main)
    return text[:start] + main + text[end:]


def _chosen(text: str, name: str | None) -> Any:
    modules = [_parse(part) for part in text.split(MODULE_SEPARATOR)]
    if name is not None:
        modules = [each for each in modules if _module_name(each) == name]
    if len(modules) != 1:
        which = "" if name is None else f" named `{name}`"
        raise InputError(f"the StableHLO has {len(modules)} modules{which}, not one")
    return modules[0]


def _parse(text: str) -> Any:
    from jax.interpreters.mlir import make_ir_context
    from jaxlib.mlir import ir

    with make_ir_context():
        try:
            return ir.Module.parse(text)
        except ir.MLIRError as error:
            reason = " ".join(str(error).split())
            raise InputError(f"the StableHLO cannot be parsed: {reason}") from error


def _value_type(type_: Any) -> ValueType:
    from jaxlib.mlir import ir

    try:
        ranked = ir.RankedTensorType(type_)
    except ValueError as error:
        raise InputError(f"`{type_}` is no array") from error
    if not ranked.has_static_shape:
        raise InputError(f"`{type_}` has no fixed shape")
    element = str(ranked.element_type)
    dtype = _FLOATS.get(element) or _integer(element)
    return ValueType(dtype=dtype, shape=tuple(ranked.shape))


def _integer(element: str) -> str:
    match = re.fullmatch(r"(u?)i(\d+)", element)
    if match is None:
        raise InputError(f"`{element}` is no element type of JAX's")
    if element == "i1":
        return "bool"
    return f"{'uint' if match[1] else 'int'}{match[2]}"

"""Numbers that decide what a kernel does: the integers that it is called with.

A Pallas kernel may read its grid, its loop bounds and the blocks that it fetches from integer
operands (scalar prefetch). Those are computed on a CPU from what the function is given, and laid
out as scalar memory holds them. So are the integers that the function itself is given.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.schedules.text import ScheduleError
from hlo_tools.hlo.module import Instruction, Module, parameter_number
from hlo_tools.hlo.parser import parse_module
from hlo_tools.hlo.shape import Shape

_LARGEST = 1 << 18
"""Elements: 1 MiB of scalar memory holds no more 32-bit ones."""
_TYPES = {"int8": "s8", "int16": "s16", "int32": "s32", "uint8": "u8", "uint32": "u32"}
Key = tuple[str, int]
"""An HLO instruction and the position of its operand."""


@dataclass(frozen=True, slots=True)
class Call:
    """A Pallas call: types of its operands as HLO writes them, and values of the integer ones."""

    types: tuple[tuple[str, tuple[int, ...]], ...]
    values: dict[int, np.ndarray]


def scalar_inputs(closed: Any, arguments: Sequence[Any], hlo: str) -> dict[Key, np.ndarray]:
    """The 32-bit words of integer operands, of Pallas kernels and of what takes parameters.

    Args:
      closed: what was compiled, as a jaxpr.
      arguments: arrays; those of floats may be types only.
      hlo: its compiled text.

    Raises:
      ScheduleError: Pallas calls cannot be told apart, or stand inside of control flow.
    """
    import jax

    module = parse_module(hlo)
    given = dict(_given(arguments, module))
    if not any(_integers(equation) for equation in _equations(closed.jaxpr)):
        return given
    values = [
        each if isinstance(each, np.ndarray | jax.Array) else np.zeros(each.shape, each.dtype)
        for each in arguments
    ]
    calls: list[Call] = []
    _evaluate(closed.jaxpr, closed.consts, jax.tree.leaves(values), calls)
    return {**given, **dict(_placed(calls, module))}


_SAME_MEMORY = ("bitcast", "copy-start", "copy-done", "get-tuple-element")


def _given(arguments: Sequence[Any], module: Module) -> Iterator[tuple[Key, np.ndarray]]:
    """The integers that the program is given, where an instruction takes them as they are."""
    entry = next((each for each in module.computations if each.is_entry), None)
    for instruction in entry.instructions if entry is not None else ():
        for index, operand in enumerate(instruction.operands):
            source = operand
            while source.opcode in _SAME_MEMORY and source.operands:
                source = source.operands[0]
            if source.opcode != "parameter":
                continue
            value = arguments[parameter_number(source)]
            if not isinstance(value, np.ndarray) or value.dtype.name not in _TYPES:
                continue
            if value.size <= _LARGEST:
                yield (instruction.name, index), words(value, source.shape, source)


def _equations(jaxpr: Any) -> Iterator[Any]:
    """The Pallas calls of a jaxpr and of those that it calls."""
    for equation in jaxpr.eqns:
        if equation.primitive.name == "pallas_call":
            yield equation
        else:
            for inner in _inner(equation):
                yield from _equations(inner.jaxpr)


def _inner(equation: Any) -> Iterator[Any]:
    for value in equation.params.values():
        for each in value if isinstance(value, tuple | list) else (value,):
            if hasattr(each, "jaxpr") and hasattr(each, "consts"):
                yield each


def _integers(equation: Any) -> list[int]:
    return [
        index
        for index, variable in enumerate(equation.invars)
        if str(variable.aval.dtype) in _TYPES and variable.aval.size <= _LARGEST
    ]


_CALLS = (
    "pjit",
    "jit",
    "closed_call",
    "custom_jvp_call",
    "custom_vjp_call",
    "remat2",
    "checkpoint",
)


def _evaluate(jaxpr: Any, constants: Any, arguments: Any, calls: list[Call]) -> list[Any]:
    """Evaluates all but the Pallas calls, which give zeros and are noted."""
    environment: dict[Any, Any] = {}

    def read(variable: Any) -> Any:
        return variable.val if hasattr(variable, "val") else environment[variable]

    environment.update(zip(jaxpr.constvars, constants, strict=True))
    environment.update(zip(jaxpr.invars, arguments, strict=True))
    for equation in jaxpr.eqns:
        operands = [read(variable) for variable in equation.invars]
        name = equation.primitive.name
        inner = list(_inner(equation))
        if name == "pallas_call":
            calls.append(
                Call(
                    tuple(
                        (str(variable.aval.dtype), variable.aval.shape)
                        for variable in equation.invars
                    ),
                    {index: np.asarray(operands[index]) for index in _integers(equation)},
                )
            )
            results = [np.zeros(out.aval.shape, out.aval.dtype) for out in equation.outvars]
        elif any(True for each in inner for _ in _equations(each.jaxpr)):
            if name not in _CALLS or len(inner) != 1:
                raise ScheduleError(f"a Pallas call inside of `{name}`")
            results = _evaluate(inner[0].jaxpr, inner[0].consts, operands, calls)
        else:
            results = _alone(jaxpr, equation, read)
        environment.update(zip(equation.outvars, results, strict=True))
    return [read(variable) for variable in jaxpr.outvars]


def _alone(jaxpr: Any, equation: Any, read: Callable[[Any], Any]) -> Sequence[Any]:
    """What one equation gives."""
    from jax.extend.core import ClosedJaxpr, jaxpr_as_fun

    variables = list(dict.fromkeys(each for each in equation.invars if not hasattr(each, "val")))
    one = jaxpr.replace(
        constvars=[], invars=variables, outvars=equation.outvars, eqns=[equation], debug_info=None
    )
    return jaxpr_as_fun(ClosedJaxpr(one, ()))(*(read(each) for each in variables))


def _placed(calls: list[Call], module: Module) -> Iterator[tuple[Key, np.ndarray]]:
    kernels = [
        instruction
        for instruction in module.instructions()
        if instruction.opcode == "custom-call"
        and instruction.attribute("custom_call_target") == '"tpu_custom_call"'
    ]
    for kernel in kernels:
        shapes = [operand.shape for operand in kernel.operands]
        fitting = [call for call in calls if _fits(call, shapes)]
        for index, shape in enumerate(shapes):
            found = [call.values[index] for call in fitting if index in call.values]
            if not found:
                continue
            if any(not np.array_equal(found[0], other) for other in found[1:]):
                raise ScheduleError(f"which Pallas call became `{kernel.name}` is not known")
            yield (kernel.name, index), words(found[0], shape, kernel)


def _fits(call: Call, shapes: list[Shape]) -> bool:
    return len(call.types) == len(shapes) and all(
        size == shape.dimensions and _TYPES.get(name, shape.element_type) == shape.element_type
        for (name, size), shape in zip(call.types, shapes, strict=True)
    )


def words(values: np.ndarray, shape: Shape, at: Instruction | None = None) -> np.ndarray:
    """An integer array as 32-bit words in the order of its buffer, tiles and packing included.

    Raises:
      ScheduleError: the layout is not one of those that integers have on TPU.
    """
    layout = shape.layout
    bits = values.dtype.itemsize * 8
    per_word = 32 // bits
    where = at.name if at is not None else "an operand"
    if values.ndim == 0 or layout is None or not layout.tiles:
        return values.reshape(-1).astype(np.int64) if bits == 32 else values.reshape(-1)
    physical = values.transpose(tuple(reversed(layout.minor_to_major)))
    tile, *inner = layout.tiles
    packing = [(per_word, 1)] if per_word > 1 else []
    if len(tile) == 1 and inner in ([], [(tile[0] // per_word,), *packing]):
        # Each tile is a matrix whose columns are words.
        physical = np.pad(
            physical, [(0, 0)] * (physical.ndim - 1) + [(0, -physical.shape[-1] % tile[0])]
        )
        tile = (per_word, tile[0] // per_word)
        physical = physical.reshape(-1, tile[1])
    elif len(tile) != 2 or tile[0] % per_word or inner not in ([], packing):
        raise ScheduleError(f"the layout of integers at `{where}` is not known")
    rows, columns = physical.shape[-2:]
    padding = [(0, 0)] * (physical.ndim - 2)
    padding += [(0, -rows % tile[0]), (0, -columns % tile[1])]
    padded = np.pad(physical, padding)
    rows, columns = padded.shape[-2:]
    tiles = padded.reshape(-1, rows // tile[0], tile[0], columns // tile[1], tile[1])
    tiles = tiles.transpose(0, 1, 3, 2, 4)
    packed = tiles.reshape(*tiles.shape[:3], tile[0] // per_word, per_word, tile[1])
    unsigned = packed.astype(np.int64) & ((1 << bits) - 1)
    shifted = unsigned << (bits * np.arange(per_word))[:, None]
    return shifted.sum(axis=-2).reshape(-1)

"""What XLA's own parser makes of HLO text, as plain values.

`jaxlib._hlo` is private and its classes move between versions, so that little of it is used:
parse (with the order of instructions in the text), and serialise as an `HloModuleProto`. The
proto is decoded here, by field number (`xla/service/hlo.proto`, `xla/xla_data.proto`): an oracle
that shares no code with what it judges.
"""

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

try:
    from jaxlib import _hlo
except ImportError:  # jaxlib is not installed, or has moved its private module
    _hlo = None

AVAILABLE = _hlo is not None and hasattr(_hlo, "hlo_module_from_text")

# (element type, dimensions, dynamic dimensions, layout); members instead of dimensions in a tuple.
PlainShape = tuple[Any, ...]

_PRIMITIVE_TYPES = {
    1: "pred", 2: "s8", 3: "s16", 4: "s32", 5: "s64", 6: "u8", 7: "u16", 8: "u32", 9: "u64",
    10: "f16", 11: "f32", 12: "f64", 13: "tuple", 14: "opaque", 15: "c64", 16: "bf16",
    17: "token", 18: "c128", 19: "f8e5m2", 20: "f8e4m3fn", 21: "s4", 22: "u4",
    23: "f8e4m3b11fnuz", 24: "f8e5m2fnuz", 25: "f8e4m3fnuz", 26: "s2", 27: "u2", 28: "f8e4m3",
    29: "f8e3m4", 30: "s1", 31: "u1", 32: "f4e2m1fn", 33: "f8e8m0fnu", 34: "buffer",
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class PlainInstruction:
    name: str
    opcode: str
    shape: PlainShape
    operands: tuple[str, ...]
    called: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlainComputation:
    name: str
    root: str
    instructions: tuple[PlainInstruction, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlainModule:
    name: str
    entry: str
    computations: dict[str, PlainComputation]


class RefusedError(Exception):
    """XLA's parser does not accept the text."""


@contextlib.contextmanager
def silenced_stderr() -> Iterator[None]:
    """XLA logs from C++, past `sys.stderr`."""
    saved = os.dup(2)
    with Path(os.devnull).open("w") as sink:
        os.dup2(sink.fileno(), 2)
        try:
            yield
        finally:
            os.dup2(saved, 2)
            os.close(saved)


def parse(text: str) -> PlainModule:
    """What XLA reads; raises `RefusedError` where it does not accept the text."""
    with silenced_stderr():
        try:
            module = _hlo.hlo_module_from_text(text)
        except (RuntimeError, ValueError) as error:
            raise RefusedError(str(error)) from None
        order = {c.name: [i.name for i in c.instructions()] for c in module.computations()}
        return _module(module.as_serialized_hlo_module_proto(), order)


def accepts(text: str) -> bool:
    try:
        parse(text)
    except RefusedError:
        return False
    return True


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7


def _fields(data: bytes) -> dict[int, list[Any]]:
    """Field number -> its values in order: numbers, or bytes."""
    found: dict[int, list[Any]] = {}
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        kind = key & 7
        value: int | bytes
        if kind == 0:
            value, at = _varint(data, at)
        elif kind == 2:
            length, at = _varint(data, at)
            value, at = data[at : at + length], at + length
        else:
            length = {1: 8, 5: 4}[kind]
            value, at = data[at : at + length], at + length
        found.setdefault(key >> 3, []).append(value)
    return found


def _numbers(values: list[Any]) -> tuple[int, ...]:
    """A repeated integer, packed or not."""
    numbers: list[int] = []
    for value in values:
        if isinstance(value, int):
            numbers.append(value)
            continue
        at = 0
        while at < len(value):
            number, at = _varint(value, at)
            numbers.append(number)
    return tuple(n - (1 << 64) if n >= 1 << 63 else n for n in numbers)


def _one(fields: dict[int, list[Any]], number: int, default: Any = 0) -> Any:
    return fields[number][-1] if number in fields else default


def _shape(data: bytes) -> PlainShape:
    fields = _fields(data)
    kind = _PRIMITIVE_TYPES.get(_one(fields, 2), f"type {_one(fields, 2)}")
    if kind in ("tuple", "buffer"):
        return kind, tuple(_shape(member) for member in fields.get(4, []))
    dynamic = tuple(map(bool, _numbers(fields.get(6, []))))
    dimensions = tuple(-1 if size == -(1 << 63) else size for size in _numbers(fields.get(3, [])))
    layout = _layout(fields[5][-1]) if 5 in fields else None
    return kind, dimensions, dynamic if any(dynamic) else (), layout


def _layout(data: bytes) -> tuple[Any, ...]:
    """Minor to major, tiles, element bits, memory space, splits, tail alignment."""
    fields = _fields(data)
    tiles = tuple(_numbers(_fields(tile).get(1, [])) for tile in fields.get(6, []))
    return (
        _numbers(fields.get(1, [])),
        tuple(tuple(-1 if d == -(1 << 63) else d for d in tile) for tile in tiles),
        _one(fields, 7),
        _one(fields, 8),
        tuple(_split(split) for split in fields.get(17, [])),
        _one(fields, 16, 1),
    )


def _split(data: bytes) -> tuple[int, tuple[int, ...]]:
    fields = _fields(data)
    return _one(fields, 1), _numbers(fields.get(2, []))


def _module(data: bytes, order: dict[str, list[str]]) -> PlainModule:
    fields = _fields(data)
    decoded = [_fields(computation) for computation in fields.get(3, [])]
    names = {_one(c, 5): _one(c, 1).decode() for c in decoded}
    computations = {}
    for computation in decoded:
        name = _one(computation, 1).decode()
        instructions = [_fields(i) for i in computation.get(2, [])]
        by_id = {_one(i, 35): _one(i, 1).decode() for i in instructions}
        by_name = {by_id[_one(i, 35)]: _instruction(i, by_id, names) for i in instructions}
        computations[name] = PlainComputation(
            name=name,
            root=by_id[_one(computation, 6)],
            instructions=tuple(by_name[name] for name in order[name]),
        )
    return PlainModule(
        name=_one(fields, 1, b"").decode(),
        entry=_one(fields, 2, b"").decode(),
        computations=computations,
    )


def _instruction(
    fields: dict[int, list[Any]], by_id: dict[int, str], computations: dict[int, str]
) -> PlainInstruction:
    return PlainInstruction(
        name=by_id[_one(fields, 35)],
        opcode=_one(fields, 2).decode(),
        shape=_shape(_one(fields, 3, b"")),
        operands=tuple(by_id[n] for n in _numbers(fields.get(36, []))),
        called=tuple(computations[n] for n in _numbers(fields.get(38, []))),
    )

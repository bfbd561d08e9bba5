"""Attribute text -> values, when somebody asks.

Each instruction keeps its attributes as the span of text behind its operands,
`, dimensions={0}, to_apply=%add, metadata={op_name="sum"}`; nothing in it is read before use.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from math import prod
from typing import Any

_KEY = re.compile(r"\s*+(?:,\s*+)?([A-Za-z_][\w.\-]*+)\s*+=\s*+")
_SIMPLE = re.compile(r'[^\s,"{}()\[\]]*+(?=[,\n]|\s*$)')
_PIECE = re.compile(r'"(?:[^"\\]++|\\.)*+"?|[{(\[]|[})\]]|,|[^"{}()\[\],]++', re.DOTALL)
_FLAT_BRACES = re.compile(r'\{(?:[^"{}]++|"(?:[^"\\]++|\\.)*+")*+\}')


def iterate_attributes(text: str) -> Iterator[tuple[str, str]]:
    """The `key=value` pairs of an attribute list in order, values unread.

    A value ends at the next comma outside brackets and strings. Reading stops at the first text
    that is no attribute, as at the end of a dump that was cut off.
    """
    position = 0
    while key := _KEY.match(text, position):
        start = key.end()
        flat = _SIMPLE.match(text, start) or _FLAT_BRACES.match(text, start)
        end = flat.end() if flat and _at_end_of_value(text, flat.end()) else _value_end(text, start)
        yield key[1], text[start:end].strip()
        position = end


def _at_end_of_value(text: str, position: int) -> bool:
    return position >= len(text) or text[position] in ",\n"


def _value_end(text: str, start: int) -> int:
    depth = 0
    for piece in _PIECE.finditer(text, start):
        head = text[piece.start()]
        if head in "{([":
            depth += 1
        elif head in "})]":
            depth -= 1
            if depth < 0:
                return piece.start()
        elif head == "," and depth == 0:
            return piece.start()
    return len(text)


def find_attribute(text: str, name: str) -> str | None:
    """The unread value of the attribute `name`, or `None`; stops reading where it is found."""
    if name not in text:
        return None
    for key, value in iterate_attributes(text):
        if key == name:
            return value
    return None


def parse_integers(value: str) -> tuple[int, ...]:
    """`{0,1}` or `0,1` -> `(0, 1)`."""
    return tuple(int(number) for number in re.findall(r"-?\d+", value))


def parse_json(value: str) -> Any:
    """A `backend_config` as JSON; `None` where it is something else (old text quotes it)."""
    try:
        config = json.loads(value)
        return json.loads(config) if isinstance(config, str) else config
    except (ValueError, RecursionError):
        return None


def parse_string(value: str) -> str:
    """A quoted value without its quotes, C escapes resolved."""
    value = value.strip()
    if len(value) >= 2 and value[0] == '"' and value[-1] == '"':
        value = value[1:-1]
    if "\\" in value:
        value = re.sub(r"\\(.)", lambda m: _ESCAPES.get(m[1], m[1]), value)
    return value


_ESCAPES = {"n": "\n", "t": "\t", "r": "\r"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaGroups:
    """Which devices take part together in a collective.

    Attributes:
      groups: device (or partition) ids, group by group; empty means one group of all devices.
      axes: the mesh axes that the text names (`mesh[...] {'axis_0'}`), otherwise empty.
    """

    groups: tuple[tuple[int, ...], ...]
    axes: tuple[str, ...] = ()

    @property
    def size(self) -> int | None:
        """Devices in one group, the largest where they differ; `None` for "all devices"."""
        return max(map(len, self.groups)) if self.groups else None


MAX_DEVICES = 1 << 20
"""More devices than this in one list of groups is hostile text."""

_IOTA = re.compile(r"\[([\d,]+)\]\s*<=\s*\[([\d,]+)\](?:\s*T\(([\d,]+)\))?")
_MESH = re.compile(r"mesh\[([^\]]*)\]\s*(?:,?\s*device_ids=\(?([^{}]*?)\)?)?\s*\{([^}]*)\}")
_AXIS = re.compile(r"['\"]?([\w.\-]+)['\"]?\s*=\s*(\d+)")
_BRACED = re.compile(r"\{([\d,\s]*)\}")


@lru_cache(maxsize=4096)
def parse_replica_groups(value: str) -> ReplicaGroups | None:
    """Every form in which XLA prints `replica_groups` (`xla/hlo/ir/replica_group.cc`).

    `{{0,1},{2,3}}`, `[2,4]<=[8]`, `[4,4]<=[4,4]T(1,0)` and `mesh['x'=4,'y'=4] {'x'}`; `None`
    for anything else.
    """
    value = value.strip()
    if iota := _IOTA.match(value):
        shape, dims = parse_integers(iota[1]), parse_integers(iota[2])
        order = parse_integers(iota[3]) if iota[3] else tuple(range(len(dims)))
        return _iota_groups(shape, dims, order)
    if mesh := _MESH.search(value):
        sizes = {name: int(size) for name, size in _AXIS.findall(mesh[1])}
        axes = tuple(re.findall(r"['\"]?([A-Za-z_][\w.\-]*)['\"]?", mesh[3]))
        return _mesh_groups(sizes, axes)
    if value.startswith("{"):
        groups = tuple(parse_integers(group) for group in _BRACED.findall(value))
        return ReplicaGroups(groups=tuple(group for group in groups if group))
    return None


def _iota_groups(
    shape: tuple[int, ...], dims: tuple[int, ...], order: tuple[int, ...]
) -> ReplicaGroups | None:
    total = prod(dims)
    sane = sorted(order) == list(range(len(dims))) and len(shape) >= 1 and 0 < total <= MAX_DEVICES
    if not sane or prod(shape) != total:
        return None
    ids = _transposed_iota(dims, order)
    size = shape[-1]
    return ReplicaGroups(groups=tuple(ids[i : i + size] for i in range(0, total, size)))


def _transposed_iota(dims: tuple[int, ...], order: tuple[int, ...]) -> tuple[int, ...]:
    """`iota(dims)` transposed by `order`, flattened."""
    strides = [prod(dims[i + 1 :]) for i in range(len(dims))]
    ranges = (range(0, dims[axis] * strides[axis], strides[axis]) for axis in order)
    return tuple(sum(index) for index in product(*ranges))


def _mesh_groups(sizes: dict[str, int], axes: tuple[str, ...]) -> ReplicaGroups | None:
    names = list(sizes)
    if any(axis not in sizes for axis in axes) or not 0 < prod(sizes.values()) <= MAX_DEVICES:
        return None
    dims = tuple(sizes.values())
    grouped = [names.index(axis) for axis in axes]
    order = tuple([i for i in range(len(dims)) if i not in grouped] + grouped)
    ids = _transposed_iota(dims, order)
    size = prod(sizes[axis] for axis in axes)
    groups = tuple(ids[i : i + size] for i in range(0, len(ids), size))
    return ReplicaGroups(groups=groups, axes=axes)

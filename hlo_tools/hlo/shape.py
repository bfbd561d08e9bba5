"""Element types, shapes, layouts and tiles of HLO, and how many bytes they take.

The grammar is that of `xla/shape_util.cc` (`HumanStringWithLayout`) and `xla/layout.cc`
(`Layout::ToString`): `bf16[256,1000]{0,1:T(8,128)(2,1)S(1)}`.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from math import prod

ELEMENT_BITS = {
    "pred": 8,
    "s1": 1, "s2": 2, "s4": 4, "s8": 8, "s16": 16, "s32": 32, "s64": 64,
    "u1": 1, "u2": 2, "u4": 4, "u8": 8, "u16": 16, "u32": 32, "u64": 64,
    "f4e2m1fn": 4,
    "f8e3m4": 8, "f8e4m3": 8, "f8e4m3fn": 8, "f8e4m3b11fnuz": 8, "f8e4m3fnuz": 8,
    "f8e5m2": 8, "f8e5m2fnuz": 8, "f8e8m0fnu": 8,
    "bf16": 16, "f16": 16, "f32": 32, "f64": 64,
    "c64": 64, "c128": 128,
    "token": 0, "opaque": 0,
}  # fmt: skip
"""Bits of one element in an unpacked buffer's arithmetic (`xla/primitive_util.h`)."""

COMBINED = -1
"""A tile dimension written `*`: it takes in the next more minor one (`Tile::kCombineDimension`)."""

HBM_SPACE = 0
VMEM_SPACES = (1, 3)
"""`S(1)` is on-chip VMEM on every TPU generation; v4 also prints `S(3)`, its common memory."""
HOST_SPACE = 5

_SUB_BYTE = frozenset(t for t, bits in ELEMENT_BITS.items() if 0 < bits < 8)
_FLOATS = ("f", "bf")


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """How an array's elements stand in memory.

    Attributes:
      minor_to_major: dimension numbers, the fastest-varying first.
      tiles: tile dimensions, outermost tiling first; `COMBINED` for `*`.
      element_bits: bits an element takes when packed (`E(4)`); 0 where the text says nothing.
      memory_space: `S(n)`; 0 is the default device memory (HBM).
      splits: `SC(0:504)` as ((0, (504,)),): the physical dimension (0 is the most major) that is
        divided among the cores of a chip, and where; each core holds one part.
      tail_alignment: the buffer's element count is rounded up to a multiple of this (`L(n)`).
      extra: the fields that nothing here depends on, as (name, text), kept for printing.
    """

    minor_to_major: tuple[int, ...]
    tiles: tuple[tuple[int, ...], ...] = ()
    element_bits: int = 0
    memory_space: int = HBM_SPACE
    splits: tuple[tuple[int, tuple[int, ...]], ...] = ()
    tail_alignment: int = 1
    extra: tuple[tuple[str, str], ...] = ()

    def physical_dimensions(self, dimensions: tuple[int, ...]) -> tuple[int, ...]:
        """`dimensions` in the order in which they stand in memory, major first."""
        return tuple(dimensions[i] for i in reversed(self.minor_to_major))


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """The type of a value: an array, a tuple of shapes, a token or opaque.

    Attributes:
      element_type: the lower-case name, for example `bf16`; `tuple` for a tuple.
      dimensions: upper bounds, where a dimension is dynamic; -1 where it is unbounded.
      dynamic: which dimensions are dynamic; empty where none is.
      layout: `None` where the text gives none.
      elements: the members of a tuple, the one shape that a buffer holds, otherwise empty.
    """

    element_type: str
    dimensions: tuple[int, ...] = ()
    dynamic: tuple[bool, ...] = ()
    layout: Layout | None = None
    elements: tuple["Shape", ...] = ()
    _sizes: tuple[int, int, int] | None = field(default=None, init=False, compare=False, repr=False)

    @property
    def element_count(self) -> int:
        """Elements, without padding; a tuple's is the sum over its members."""
        return (self._sizes or self._measure())[0]

    @property
    def logical_bytes(self) -> int:
        """Bytes of the elements alone, packed as the layout says."""
        return (self._sizes or self._measure())[1]

    @property
    def padded_bytes(self) -> int:
        """Bytes of the buffer, tile padding included; of the largest part where cores share it.

        A tuple's is the sum over its members: the table of pointers is not counted.
        """
        return (self._sizes or self._measure())[2]

    def _measure(self) -> tuple[int, int, int]:
        """Element count, logical and padded bytes: computed once, when first asked for."""
        count = logical = padded = 0
        for leaf in self.leaves():
            bits = leaf.stored_bits
            elements = prod(max(d, 0) for d in leaf.dimensions)
            count += elements
            logical += (elements * bits + 7) // 8
            padded += (leaf._padded_count() * bits + 7) // 8
        object.__setattr__(self, "_sizes", (count, logical, padded))
        return count, logical, padded

    @property
    def is_tuple(self) -> bool:
        """Whether this is a tuple; `()` is one, of no elements."""
        return self.element_type == "tuple"

    @property
    def is_array(self) -> bool:
        """Whether this is an array of a known element type (a scalar is one)."""
        return ELEMENT_BITS.get(self.element_type, 0) > 0

    @property
    def is_float(self) -> bool:
        """Whether the elements are floating-point numbers."""
        return self.element_type.startswith(_FLOATS)

    @property
    def element_bits(self) -> int:
        """Bits of one element as a number; 0 for tokens, opaque and unknown types."""
        return ELEMENT_BITS.get(self.element_type, 0)

    @property
    def stored_bits(self) -> int:
        """Bits that one element takes in memory: sub-byte types are packed only under `E(n)`."""
        if self.layout is not None and self.layout.element_bits:
            return self.layout.element_bits
        if self.element_type in _SUB_BYTE:
            return 8
        return self.element_bits

    @property
    def memory_space(self) -> int:
        """`S(n)` of the layout; 0 (HBM) where nothing is said."""
        return self.layout.memory_space if self.layout is not None else HBM_SPACE

    @property
    def on_chip(self) -> bool:
        """Whether the buffer lies in on-chip memory (VMEM)."""
        return self.memory_space in VMEM_SPACES

    def leaves(self) -> Iterator["Shape"]:
        """The arrays, tokens and opaques in it, depth first; the shape itself if no tuple."""
        stack = [self]
        while stack:
            shape = stack.pop()
            if shape.is_tuple or shape.elements:
                stack.extend(reversed(shape.elements))
            else:
                yield shape

    def padding_by_dimension(self) -> dict[int, int]:
        """Logical dimension -> its size after padding, for the dimensions that padding grows.

        Only the first tile is looked at: the further ones divide it.
        """
        if self.layout is None or not self.layout.tiles:
            return {}
        tile = self.layout.tiles[0]
        order = self.layout.minor_to_major
        grown = {}
        for dim, size in zip(order, reversed(tile), strict=False):
            if size > 0 and self.dimensions[dim] % size:
                grown[dim] = -(-self.dimensions[dim] // size) * size
        return grown

    def _padded_count(self) -> int:
        """Elements of the buffer after tiling (`ShapeUtil::ByteSizeOf`, layout tiles applied)."""
        layout = self.layout
        if layout is None or len(layout.minor_to_major) != len(self.dimensions):
            return prod(max(d, 0) for d in self.dimensions)
        dims = [max(d, 0) for d in layout.physical_dimensions(self.dimensions)]
        for dim, indices in layout.splits:
            if dim < len(dims):
                edges = [0, *indices, dims[dim]]
                dims[dim] = max(end - start for start, end in pairwise(edges))
        for tile in layout.tiles:
            dims = _tiled(dims, tile)
        count = prod(dims)
        align = layout.tail_alignment
        return -(-count // align) * align if align > 1 else count

    def __str__(self) -> str:
        return format_shape(self)


UNKNOWN_SHAPE = Shape(element_type="unknown")
"""The shape of an instruction that the text gives no shape."""


def _tiled(dims: list[int], tile: tuple[int, ...]) -> list[int]:
    """The dimensions after one more level of tiling: tile counts, then the tile itself."""
    if len(dims) < len(tile):
        dims = [1] * (len(tile) - len(dims)) + dims
    kept = dims[: len(dims) - len(tile)]
    counts, sizes, carried = [], [], 1
    for dim, size in zip(dims[len(dims) - len(tile) :], tile, strict=True):
        if size == COMBINED:
            carried *= dim
            continue
        whole = dim * carried
        carried = 1
        counts.append(-(-whole // size) if size else whole)
        sizes.append(size)
    return kept + counts + sizes


_FIELD_ORDER = ("D", "T", "L", "#", "*", "E", "S", "SC", "P", "M")


def format_layout(layout: Layout) -> str:
    """The layout as XLA prints it, braces included."""
    fields = dict(layout.extra)
    if layout.tiles:
        fields["T"] = "".join(
            "(" + ",".join("*" if d == COMBINED else str(d) for d in tile) + ")"
            for tile in layout.tiles
        )
    if layout.tail_alignment != 1:
        fields["L"] = f"({layout.tail_alignment})"
    if layout.element_bits:
        fields["E"] = f"({layout.element_bits})"
    if layout.memory_space:
        fields["S"] = f"({layout.memory_space})"
    if layout.splits:
        fields["SC"] = "".join(
            f"({dim}:{','.join(map(str, indices))})" for dim, indices in layout.splits
        )
    order = ",".join(map(str, layout.minor_to_major))
    known = [name for name in _FIELD_ORDER if name in fields]
    unknown = [name for name in fields if name not in _FIELD_ORDER]
    suffix = "".join(name + fields[name] for name in known + unknown)
    return "{" + order + (":" + suffix if suffix else "") + "}"


def format_shape(shape: Shape, *, with_layout: bool = True) -> str:
    """The shape as XLA prints it; without a stack of calls however deep the tuples nest."""
    out: list[str] = []
    stack: list[Shape | str] = [shape]
    while stack:
        item = stack.pop()
        if isinstance(item, str):
            out.append(item)
        elif item.is_tuple or item.elements:
            parts: list[Shape | str] = ["(" if item.is_tuple else "b("]
            for index, element in enumerate(item.elements):
                if index:
                    parts.append(", ")
                parts.append(element)
            parts.append(")")
            stack.extend(reversed(parts))
        else:
            out.append(_format_leaf(item, with_layout))
    return "".join(out)


def _format_leaf(shape: Shape, with_layout: bool) -> str:
    if "[" in shape.element_type or "(" in shape.element_type:
        return shape.element_type  # a type of some later XLA, kept whole
    dynamic = shape.dynamic or (False,) * len(shape.dimensions)
    dims = ",".join(
        "?" if size < 0 else f"<={size}" if is_dynamic else str(size)
        for size, is_dynamic in zip(shape.dimensions, dynamic, strict=True)
    )
    layout = format_layout(shape.layout) if with_layout and shape.layout is not None else ""
    return f"{shape.element_type}[{dims}]{layout}"


MAX_NESTING = 500
"""Deeper tuples are refused, as XLA's own parser does (`hlo_parser.h`)."""
MAX_DIMENSIONS = 1024
"""More dimensions than this in one shape is hostile text; XLA's own arrays stay far below."""

_COMMENT = re.compile(r"/\*[^*]*+\*/")
_ARRAY = re.compile(r"([a-z][a-z0-9]*+)\[([^\[\]]*+)\](?:\{([^{}]*+)\})?")
_TOKEN = re.compile(r"[ \t\r\n,]*+(?:([a-z][a-z0-9]*+\[[^\[\]]*+\](?:\{[^{}]*+\})?)|(b?\()|(\))|$)")
"""Groups: an array; what opens a tuple or buffer; what closes it."""

_STATIC_DIMENSIONS = re.compile(r"\d{1,19}(?:,\d{1,19})*+")
_LAYOUT_FIELD = re.compile(r"\s*([A-Z]+|[#*])((?:\((?:[^()]|\([^()]*\))*\))+)")
_PAREN = re.compile(r"\(([^()]*)\)")


def parse_shape(text: str) -> Shape | None:
    """The shape that `text` writes, or `None` where it is none that this grammar knows.

    Tuples may nest up to `MAX_NESTING` deep; comments such as `/*index=5*/` are skipped.
    """
    return ShapeReader().read(text)


class ShapeReader:
    """Reads shapes, each array type and each layout once: a module repeats the same few."""

    __slots__ = ("_arrays", "_layouts")

    def __init__(self) -> None:
        self._arrays: dict[str, Shape] = {}
        self._layouts: dict[str, Layout | None] = {}

    def read(self, text: str) -> Shape | None:
        """As `parse_shape`."""
        if "/*" in text:
            text = _COMMENT.sub("", text)
        if text[:1] != "(":
            array = self._array(text)
            return array if array is not None else self._read_nested(text)
        if text[-1] == ")":
            arrays = self._arrays
            flat = [arrays.get(t) or self._array(t) for t in text[1:-1].split(", ")]
            if None not in flat:
                return Shape(element_type="tuple", elements=tuple(s for s in flat if s is not None))
        return self._read_nested(text)

    def _read_nested(self, text: str) -> Shape | None:
        opened: list[tuple[str, list[Shape]]] = []
        members: list[Shape] = []
        position, end = 0, len(text)
        while position < end:
            token = _TOKEN.match(text, position)
            if token is None:
                return None
            position = token.end()
            array, opening, closing = token.groups()
            if array:
                shape = self._arrays.get(array) or self._array(array)
                if shape is None:
                    return None
                members.append(shape)
            elif opening:
                if len(opened) == MAX_NESTING:
                    return None
                opened.append((opening, members))
                members = []
            elif closing:
                if not opened:
                    return None
                opening, outer = opened.pop()
                kind = "tuple" if opening == "(" else "buffer"
                if kind == "buffer" and len(members) != 1:
                    return None
                outer.append(Shape(element_type=kind, elements=tuple(members)))
                members = outer
        return members[0] if len(members) == 1 and not opened else None

    def _array(self, text: str) -> Shape | None:
        match = _ARRAY.fullmatch(text)
        if match is None:
            return None
        element_type, dimensions, layout_text = match.groups()
        sizes = _parse_dimensions(dimensions)
        if sizes is None:
            return None
        layout = None
        if layout_text:
            if layout_text not in self._layouts:
                self._layouts[layout_text] = parse_layout(layout_text)
            layout = self._layouts[layout_text]
            if layout is None or any(d >= len(sizes[0]) for d in layout.minor_to_major):
                return None
        shape = self._arrays[text] = Shape(
            element_type=element_type, dimensions=sizes[0], dynamic=sizes[1], layout=layout
        )
        return shape


def _parse_dimensions(text: str) -> tuple[tuple[int, ...], tuple[bool, ...]] | None:
    """`2,<=4,?` -> sizes and which of them are dynamic (none: empty)."""
    if not text.strip():
        return (), ()
    if _STATIC_DIMENSIONS.fullmatch(text):
        static = tuple(map(int, text.split(",")))
        return (static, ()) if len(static) <= MAX_DIMENSIONS else None
    sizes: list[int] = []
    dynamic: list[bool] = []
    for part in text.split(","):
        part = part.strip()
        dynamic.append(part.startswith(("<=", "?")))
        part = part.removeprefix("<=")
        if part == "?":
            sizes.append(-1)
        elif part.isascii() and part.isdigit() and len(part) < 20:
            sizes.append(int(part))
        else:
            return None
    if len(sizes) > MAX_DIMENSIONS:
        return None
    return tuple(sizes), tuple(dynamic) if any(dynamic) else ()


def parse_layout(text: str) -> Layout | None:
    """The layout between the braces of `{1,0:T(8,128)S(1)}`, or `None` where it is none."""
    order_text, _, suffix = text.partition(":")
    try:
        order = tuple(int(part) for part in order_text.split(",") if part.strip())
        fields = {m[1]: m[2] for m in _LAYOUT_FIELD.finditer(suffix)}
        tiles = tuple(
            tuple(COMBINED if d.strip() == "*" else int(d) for d in tile.split(","))
            for tile in _PAREN.findall(fields.pop("T", ""))
        )
        element_bits = int(fields.pop("E", "(0)")[1:-1])
        memory_space = int(fields.pop("S", "(0)")[1:-1])
        tail_alignment = int(fields.pop("L", "(1)")[1:-1])
        splits = tuple(
            (int(dim), tuple(map(int, indices.split(","))))
            for dim, _, indices in (s.partition(":") for s in _PAREN.findall(fields.pop("SC", "")))
        )
    except ValueError:
        return None
    if any(d < 0 for d in order) or len(set(order)) != len(order):
        return None
    return Layout(
        minor_to_major=order,
        tiles=tiles,
        element_bits=element_bits,
        memory_space=memory_space,
        splits=splits,
        tail_alignment=tail_alignment,
        extra=tuple((name, value) for name, value in fields.items()),
    )

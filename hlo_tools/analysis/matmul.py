"""Dots and convolutions as matrix products: their sizes and how much they compute."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from math import gcd, prod

from hlo_tools.hlo.attributes import iterate_attributes, parse_integers
from hlo_tools.hlo.module import Instruction
from hlo_tools.hlo.shape import Shape


@dataclass(frozen=True, slots=True, kw_only=True)
class Matmul:
    """A dot or convolution as `batch` products of an m by k with a k by n matrix.

    Attributes:
      batch: independent products: batch dimensions, groups.
      m: rows: free dimensions of the left operand, output positions of a convolution.
      n: columns: free dimensions of the right operand, output features.
      k: the contracted dimensions; input features times the window of a convolution.
      flops: two for each product that really is added; padding and dilation of a convolution
        make this less than 2·batch·m·n·k.
      element_type: of the wider operand, as the matrix unit is fed.
      passes: how often the matrix unit runs over bf16 pieces: 6 for f32 at `highest`, 3 at
        `high`, otherwise 1.
    """

    batch: int
    m: int
    n: int
    k: int
    flops: int
    element_type: str
    passes: int


def matmul(instruction: Instruction) -> Matmul | None:
    """The sizes of a `dot` or `convolution`; `None` where its attributes cannot be read."""
    if len(instruction.operands) < 2:
        return None
    lhs, rhs = instruction.operands[0].shape, instruction.operands[1].shape
    if not (lhs.is_array and rhs.is_array and instruction.shape.is_array):
        return None
    attributes = dict(iterate_attributes(instruction.attribute_text))
    wide = lhs if lhs.element_bits >= rhs.element_bits else rhs
    if instruction.opcode == "dot":
        return dot_size(attributes, lhs, rhs, wide.element_type)
    return convolution_size(attributes, lhs, rhs, instruction.shape, wide.element_type)


def _passes(attributes: dict[str, str], element_type: str) -> int:
    """Passes of the matrix unit over bf16 pieces of f32 operands (`PrecisionConfig`)."""
    if element_type not in ("f32", "f64", "c64"):
        return 1
    precision = attributes.get("operand_precision", "")
    return 6 if "highest" in precision else 3 if "high" in precision else 1


def dot_size(
    attributes: dict[str, str], lhs: Shape, rhs: Shape, element_type: str
) -> Matmul | None:
    """The sizes of a `dot` with the given attributes; `None` where they do not fit the operands."""
    batch_dims = parse_integers(attributes.get("lhs_batch_dims", ""))
    contracted = parse_integers(attributes.get("lhs_contracting_dims", ""))
    if any(not 0 <= d < len(lhs.dimensions) for d in (*batch_dims, *contracted)):
        return None
    batch = prod(lhs.dimensions[d] for d in batch_dims)
    k = prod(lhs.dimensions[d] for d in contracted)
    if batch <= 0 or k <= 0:
        return None
    m, n = lhs.element_count // (batch * k), rhs.element_count // (batch * k)
    return Matmul(
        batch=batch,
        m=m,
        n=n,
        k=k,
        flops=2 * batch * m * n * k,
        element_type=element_type,
        passes=_passes(attributes, element_type),
    )


_LABELS = re.compile(r"([\w?]+)_([\w?]+)->([\w?]+)")
_WINDOW_FIELD = re.compile(r"(\w+)=([\w\-]+)")
MAX_WINDOW_POSITIONS = 1 << 16
"""A window dimension larger than this is taken as wholly inside its operand."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """The fields of `window={size=3x3 pad=1_1x1_1 stride=2x2 lhs_dilate=... rhs_dilate=...}`."""

    sizes: tuple[int, ...] = ()
    strides: tuple[int, ...] = ()
    pads: tuple[int, ...] = ()
    base_dilations: tuple[int, ...] = ()
    window_dilations: tuple[int, ...] = ()


def parse_window(text: str) -> Window:
    """Reads a `window` attribute; of `pad` only what stands before the operand."""
    fields = dict(_WINDOW_FIELD.findall(text))

    def numbers(name: str) -> tuple[int, ...]:
        parts = fields[name].split("x") if name in fields else []
        heads = (part.partition("_")[0] for part in parts)
        return tuple(int(h) if h.lstrip("-").isdigit() else 0 for h in heads)

    return Window(
        sizes=numbers("size"),
        strides=numbers("stride"),
        pads=numbers("pad"),
        base_dilations=numbers("lhs_dilate"),
        window_dilations=numbers("rhs_dilate"),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Spatial:
    """One spatial dimension of a convolution: sizes, and how the window moves over it."""

    base: int
    window: int
    out: int
    stride: int = 1
    pad: int = 0
    base_dilation: int = 1
    window_dilation: int = 1

    @property
    def is_batch(self) -> bool:
        """Whether it stands for a batch dimension: each output meets one pair of elements.

        XLA writes a batch dimension of a dot as a window as wide as the operand whose base is
        dilated by that width and which moves one less than it.
        """
        return (
            self.window > 1
            and self.base == self.window == self.out
            and self.base_dilation == self.window
            and self.stride == self.window - 1
        )

    def meetings(self) -> int:
        """Pairs of output and window positions at which the window lies on an element."""
        if self.is_batch:
            return self.out
        if self.window > MAX_WINDOW_POSITIONS:
            return self.window * self.out
        return sum(self._hits(k) for k in range(self.window))

    def _hits(self, k: int) -> int:
        """Output positions at which window element `k` lies on an element of the base."""
        offset = k * self.window_dilation - self.pad
        limit = (self.base - 1) * self.base_dilation
        # o·stride + offset must be a multiple of the dilation within [0, limit].
        first = max(0, -(offset // self.stride)) if offset < 0 else 0
        last = min(self.out - 1, (limit - offset) // self.stride) if limit >= offset else -1
        if first > last:
            return 0
        if self.base_dilation == 1:
            return last - first + 1
        common = gcd(self.stride, self.base_dilation)
        if offset % common:
            return 0
        step = self.base_dilation // common
        place = -offset // common * pow(self.stride // common, -1, step) % step
        start = first + (place - first) % step
        return (last - start) // step + 1 if start <= last else 0


def _spatials(
    window: Window, base: list[int], kernel: list[int], out: list[int]
) -> Iterator[_Spatial]:
    def at(values: tuple[int, ...], index: int, default: int) -> int:
        return values[index] if index < len(values) else default

    for index, (size, width, result) in enumerate(zip(base, kernel, out, strict=True)):
        yield _Spatial(
            base=size,
            window=width,
            out=result,
            stride=max(1, at(window.strides, index, 1)),
            pad=at(window.pads, index, 0),
            base_dilation=max(1, at(window.base_dilations, index, 1)),
            window_dilation=max(1, at(window.window_dilations, index, 1)),
        )


def convolution_size(
    attributes: dict[str, str], lhs: Shape, rhs: Shape, result: Shape, element_type: str
) -> Matmul | None:
    """The sizes of a `convolution`; `None` where `dim_labels` does not fit the shapes.

    The TPU compiler writes every dot as one, further dimensions of the dot as window dimensions.
    """
    labels = _LABELS.match(attributes.get("dim_labels", ""))
    if labels is None:
        return None
    shapes = (lhs.dimensions, rhs.dimensions, result.dimensions)
    if [len(labels[g]) for g in (1, 2, 3)] != [len(d) for d in shapes]:
        return None
    inputs, kernel, out = (
        dict(zip(labels[g], d, strict=True)) for g, d in zip((1, 2, 3), shapes, strict=True)
    )
    if not {"b", "f"} <= inputs.keys() & out.keys() or not {"i", "o"} <= kernel.keys():
        return None
    names = sorted(inputs.keys() - {"b", "f"})
    if not set(names) <= kernel.keys() & out.keys():
        return None
    groups = _positive(attributes.get("feature_group_count"))
    batch_groups = _positive(attributes.get("batch_group_count"))
    window = parse_window(attributes.get("window", ""))
    spatials = list(
        _spatials(
            window, [inputs[s] for s in names], [kernel[s] for s in names], [out[s] for s in names]
        )
    )
    batch, m, n, k = groups * batch_groups, out["b"], out["f"], kernel["i"]
    for spatial in spatials:
        if spatial.is_batch:
            batch *= spatial.out
        elif spatial.base == 1 and spatial.window == spatial.out:
            n *= spatial.window  # slid over a single element: its positions are columns
        else:
            m *= spatial.out
            k *= spatial.window
    products = kernel["i"] * out["f"] * (inputs["b"] // batch_groups)
    products *= prod(s.meetings() for s in spatials)
    return Matmul(
        batch=batch,
        m=max(1, m),
        n=max(1, n // (groups * batch_groups)),
        k=max(1, k),
        flops=2 * products,
        element_type=element_type,
        passes=_passes(attributes, element_type),
    )


def _positive(value: str | None) -> int:
    return int(value) if value and value.isdecimal() and int(value) > 0 else 1

"""How much arithmetic an instruction does.

Counted as XLA's own `HloCostAnalysis` counts (`xla/service/hlo_cost_analysis.cc`): two operations
for each product that a dot or convolution adds up, one for each element of an elementwise result,
transcendental functions apart. Nothing here knows a chip.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from math import ceil, gcd, log2, prod

from hlo_tools.hlo.attributes import iterate_attributes, parse_integers, parse_json
from hlo_tools.hlo.module import Computation, Instruction
from hlo_tools.hlo.shape import Shape


@dataclass(frozen=True, slots=True, kw_only=True)
class Matmul:
    """A dot or convolution as `batch` products of an M×K by a K×N matrix.

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """The arithmetic of one execution of an instruction.

    Attributes:
      flops: multiplies, adds, comparisons and the like, those of `matmuls` included.
      transcendentals: exponentials, logarithms, roots and the like.
      vector_elements: results of elementwise and reducing operations, tile padding included,
        weighted by `VECTOR_COST`: what a vector unit has to issue.
      matmuls: the dots and convolutions in it.
    """

    flops: int = 0
    transcendentals: int = 0
    vector_elements: int = 0
    matmuls: tuple[Matmul, ...] = ()

    def __add__(self, other: "Work") -> "Work":
        return Work(
            flops=self.flops + other.flops,
            transcendentals=self.transcendentals + other.transcendentals,
            vector_elements=self.vector_elements + other.vector_elements,
            matmuls=self.matmuls + other.matmuls,
        )


NOTHING = Work()

ELEMENTWISE = frozenset(
    {
        "abs", "add", "and", "bitcast-convert", "ceil", "clamp", "clz", "compare", "complex",
        "convert", "count-leading-zeros", "divide", "floor", "imag", "is-finite", "maximum",
        "minimum", "multiply", "negate", "not", "or", "popcnt", "real", "reduce-precision",
        "remainder", "round-nearest-afz", "round-nearest-even", "select", "shift-left",
        "shift-right-arithmetic", "shift-right-logical", "sign", "stochastic-convert", "subtract",
        "xor",
    }
)  # fmt: skip
TRANSCENDENTAL = frozenset(
    {
        "acos", "acosh", "asin", "asinh", "atan2", "atanh", "cbrt", "cosh", "cosine", "erf",
        "exponential", "exponential-minus-one", "log", "log-plus-one", "logistic", "power",
        "rsqrt", "sine", "sinh", "sqrt", "tan", "tanh",
    }
)  # fmt: skip
VECTOR_COST = {
    "divide": 6, "remainder": 10, "power": 16, "sine": 24, "cosine": 24, "tan": 32, "atan2": 24,
    "exponential": 4, "log": 4, "tanh": 4, "logistic": 6, "erf": 16, "sqrt": 6, "rsqrt": 4,
    "cbrt": 16, "log-plus-one": 8, "exponential-minus-one": 8,
}  # fmt: skip
"""Vector instructions that stand behind one element of these, roughly; 1 for the others.

Counted in the final bundles that libtpu writes for one-operation kernels."""

_CALLS_OF_BODY = frozenset({"fusion"})


class WorkCounter:
    """Counts the work of instructions; what computations hold is counted once and kept."""

    def __init__(self) -> None:
        self._totals: dict[Computation, Work] = {}

    def of(self, instruction: Instruction) -> Work | None:
        """The work of one execution; `None` for calls into code that HLO does not show.

        A `while`, `call` or `conditional` does nothing itself: what it calls is counted there.
        """
        if instruction.opcode == "fusion":
            called = instruction.called_computations
            return self.inside(called[0]) if called else None
        if instruction.opcode == "custom-call":
            return _custom_call_work(instruction)
        return _own_work(instruction, self._applied(instruction))

    def inside(self, computation: Computation) -> Work:
        """The work of all instructions of a computation, nested fusions included."""
        stack = [computation]
        while stack:
            current = stack[-1]
            if current in self._totals:
                stack.pop()
                continue
            nested = [
                called
                for i in current.instructions
                if i.opcode == "fusion"
                for called in i.called_computations
            ]
            waiting = [c for c in nested if c not in self._totals and c not in stack]
            if waiting:
                stack.extend(waiting)
                continue
            self._totals[current] = self._sum(current, nested)
            stack.pop()
        return self._totals[computation]

    def _sum(self, computation: Computation, nested: list[Computation]) -> Work:
        flops = transcendentals = vector = 0
        matmuls: list[Matmul] = []
        inner = (self._totals.get(c, NOTHING) for c in nested)
        own = (
            _custom_call_work(i) or NOTHING
            if i.opcode == "custom-call"
            else _own_work(i, self._applied(i))
            for i in computation.instructions
            if i.opcode not in _CALLS_OF_BODY
        )
        for work in (*inner, *own):
            flops += work.flops
            transcendentals += work.transcendentals
            vector += work.vector_elements
            matmuls.extend(work.matmuls)
        return Work(
            flops=flops,
            transcendentals=transcendentals,
            vector_elements=vector,
            matmuls=tuple(matmuls),
        )

    def _applied(self, instruction: Instruction) -> Work:
        """The work of the computation that a reduction or the like applies to each element."""
        if instruction.opcode not in _APPLYING:
            return NOTHING
        total = NOTHING
        for computation in instruction.called_computations:
            if computation not in self._totals:
                own = [_own_work(i, NOTHING) for i in computation.instructions]
                self._totals[computation] = Work(
                    flops=sum(w.flops for w in own),
                    transcendentals=sum(w.transcendentals for w in own),
                    vector_elements=sum(w.flops + w.transcendentals for w in own),
                )
            total = total + self._totals[computation]
        return total


_APPLYING = frozenset({"reduce", "reduce-window", "scatter", "select-and-scatter", "map"})


def _padded_elements(shape: Shape) -> int:
    bits = shape.stored_bits
    return shape.padded_bytes * 8 // bits if bits else shape.element_count


def _own_work(instruction: Instruction, applied: Work) -> Work:
    """The work of an instruction, its nested computations aside."""
    opcode, shape = instruction.opcode, instruction.shape
    if opcode in ELEMENTWISE:
        cost = VECTOR_COST.get(opcode, 1) * _padded_elements(shape)
        return Work(flops=shape.element_count, vector_elements=cost)
    if opcode in TRANSCENDENTAL:
        cost = VECTOR_COST.get(opcode, 8) * _padded_elements(shape)
        return Work(transcendentals=shape.element_count, vector_elements=cost)
    if opcode in ("dot", "convolution"):
        size = matmul(instruction)
        return Work(flops=size.flops, matmuls=(size,)) if size else NOTHING
    if opcode in _APPLYING:
        return _applying_work(instruction, applied)
    if opcode in ("all-reduce", "all-reduce-start", "reduce-scatter"):
        return Work(flops=sum(o.shape.element_count for o in instruction.operands))
    if opcode == "sort":
        return _sort_work(instruction)
    if opcode == "fft":
        count = shape.element_count
        lengths = parse_integers(instruction.attribute("fft_length") or "")
        # Eight operations for each complex multiply-add, log2(length) of them an element.
        return Work(flops=int(8 * count * sum(log2(n) for n in lengths if n > 0)))
    if opcode == "cholesky" and len(shape.dimensions) >= 2:
        return Work(flops=shape.element_count * shape.dimensions[-1] // 3)
    if opcode == "triangular-solve" and instruction.operands:
        matrix = instruction.operands[0].shape.dimensions
        return Work(flops=shape.element_count * (matrix[-1] if matrix else 1))
    return NOTHING


def _applying_work(instruction: Instruction, applied: Work) -> Work:
    opcode = instruction.opcode
    operands = instruction.operands
    if not operands:
        return NOTHING
    results = _first_leaf(instruction.shape).element_count
    if opcode == "reduce":
        times = max(0, operands[0].shape.element_count - results)
        padded = _padded_elements(operands[0].shape)
    elif opcode == "reduce-window":
        sizes = _window(instruction.attribute("window") or "").sizes
        times = results * max(0, prod(sizes) - 1)
        # Windows overlap: a doubling scheme takes log2(size) steps in each dimension.
        steps = sum((size - 1).bit_length() for size in sizes if size > 1)
        wide = max(
            _padded_elements(operands[0].shape), _padded_elements(_first_leaf(instruction.shape))
        )
        padded = wide * steps
    elif opcode == "select-and-scatter":
        source = operands[1].shape.element_count if len(operands) > 1 else results
        window = prod(_window(instruction.attribute("window") or "").sizes)
        times = padded = source * max(1, window)
    elif opcode == "scatter":
        times = padded = operands[-1].shape.element_count
    else:
        times = padded = results
    return Work(
        flops=times * applied.flops,
        transcendentals=times * applied.transcendentals,
        vector_elements=padded * applied.vector_elements,
    )


def _first_leaf(shape: Shape) -> Shape:
    return next(iter(shape.leaves()), shape)


def _sort_work(instruction: Instruction) -> Work:
    """n·log2(n) comparisons for each row, and as many exchanges as a bitonic network makes."""
    key = _first_leaf(instruction.shape)
    along = parse_integers(instruction.attribute("dimensions") or "")
    size = key.dimensions[along[0]] if along and along[0] < len(key.dimensions) else 1
    stages = ceil(log2(size)) if size > 1 else 0
    arrays = max(1, len(instruction.operands))
    network = stages * (stages + 1) // 2
    return Work(
        flops=key.element_count * stages,
        vector_elements=_padded_elements(key) * network * arrays,
    )


# ---- dots and convolutions


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
        return _dot(attributes, lhs, rhs, wide.element_type)
    return _convolution(attributes, lhs, rhs, instruction.shape, wide.element_type)


def _passes(attributes: dict[str, str], element_type: str) -> int:
    """Passes of the matrix unit over bf16 pieces of f32 operands (`PrecisionConfig`)."""
    if element_type not in ("f32", "f64", "c64"):
        return 1
    precision = attributes.get("operand_precision", "")
    return 6 if "highest" in precision else 3 if "high" in precision else 1


def _dot(attributes: dict[str, str], lhs: Shape, rhs: Shape, element_type: str) -> Matmul | None:
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
class _Window:
    """The fields of `window={size=3x3 pad=1_1x1_1 stride=2x2 lhs_dilate=... rhs_dilate=...}`."""

    sizes: tuple[int, ...] = ()
    strides: tuple[int, ...] = ()
    pads: tuple[int, ...] = ()
    base_dilations: tuple[int, ...] = ()
    window_dilations: tuple[int, ...] = ()


def _window(text: str) -> _Window:
    fields = dict(_WINDOW_FIELD.findall(text))

    def numbers(name: str) -> tuple[int, ...]:
        parts = fields[name].split("x") if name in fields else []
        heads = (part.partition("_")[0] for part in parts)
        return tuple(int(h) if h.lstrip("-").isdigit() else 0 for h in heads)

    return _Window(
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
        step = self.base_dilation // gcd(self.stride, self.base_dilation)
        for start in range(first, min(first + step, last + 1)):
            if (start * self.stride + offset) % self.base_dilation == 0:
                return (last - start) // step + 1
        return 0


def _spatials(
    window: _Window, base: list[int], kernel: list[int], out: list[int]
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


def _convolution(
    attributes: dict[str, str], lhs: Shape, rhs: Shape, result: Shape, element_type: str
) -> Matmul | None:
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
    window = _window(attributes.get("window", ""))
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


# ---- custom calls


def _custom_call_work(instruction: Instruction) -> Work | None:
    """The work of a library or Pallas call, where its attributes tell it."""
    text = instruction.attribute_text
    match = _TARGET.search(text)
    target = match[1] if match else ""
    if target in MOVES_NOTHING:
        return NOTHING
    if target.startswith("__cudnn$conv"):
        return _library_convolution(instruction, target, dict(iterate_attributes(text)))
    is_matmul = target.startswith(("__cublas$", "__triton_gemm"))
    if not is_matmul and '"cost_estimate"' not in text:
        return None
    config = parse_json(instruction.attribute("backend_config") or "")
    if not isinstance(config, dict):
        return None
    if is_matmul:
        return _library_matmul(instruction, config)
    estimate = _cost_estimate(config)
    if estimate is None:
        return None
    return Work(
        flops=_count(estimate.get("flops")),
        transcendentals=_count(estimate.get("transcendentals")),
    )


_TARGET = re.compile(r'custom_call_target="([^"]*)"')
MOVES_NOTHING = frozenset(
    {"AllocateBuffer", "ConcatBitcast", "AssumeGatherIndicesInBound", "Sharding", "Pin", "Unpin"}
)
"""Targets of custom calls that do and move nothing."""


def _cost_estimate(config: dict[str, object]) -> dict[str, object] | None:
    """What a Pallas kernel's author says it costs (`pallas.CostEstimate`)."""
    nested = config.get("custom_call_config")
    found = (nested if isinstance(nested, dict) else config).get("cost_estimate")
    return found if isinstance(found, dict) else None


def _count(value: object) -> int:
    return int(value) if isinstance(value, int | str) and str(value).isdecimal() else 0


def _library_matmul(instruction: Instruction, config: dict[str, object]) -> Work | None:
    nested = config.get("gemm_backend_config", config)
    dims = nested.get("dot_dimension_numbers") if isinstance(nested, dict) else None
    if not isinstance(dims, dict) or len(instruction.operands) < 2:
        return None
    lists = {key: value for key, value in dims.items() if isinstance(value, list)}
    attributes = {
        f"lhs_{kind}_dims": ",".join(map(str, lists.get(f"lhs_{kind}_dimensions", ())))
        for kind in ("batch", "contracting")
    }
    lhs, rhs = instruction.operands[0].shape, instruction.operands[1].shape
    size = _dot(attributes, lhs, rhs, lhs.element_type)
    return Work(flops=size.flops, matmuls=(size,)) if size else None


def _library_convolution(
    instruction: Instruction, target: str, attributes: dict[str, str]
) -> Work | None:
    """A cuDNN call: the attributes of a convolution, whose three arrays are found by target."""
    result = _first_leaf(instruction.shape)
    if len(instruction.operands) < 2:
        return None
    first, second = instruction.operands[0].shape, instruction.operands[1].shape
    if "BackwardInput" in target:
        lhs, rhs, out = result, second, first
    elif "BackwardFilter" in target:
        lhs, rhs, out = first, result, second
    else:
        lhs, rhs, out = first, second, result
    size = _convolution(attributes, lhs, rhs, out, first.element_type)
    return Work(flops=size.flops, matmuls=(size,)) if size else None

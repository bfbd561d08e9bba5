"""How much arithmetic an instruction does.

Counted as XLA's own `HloCostAnalysis` counts (`xla/service/hlo_cost_analysis.cc`): two operations
for each product that a dot or convolution adds up, one for each element of an elementwise result,
transcendental functions apart. Nothing here knows a chip.
"""

import re
from dataclasses import dataclass
from math import ceil, log2, prod

from hlo_tools.analysis.matmul import (
    Matmul,
    convolution_size,
    dot_size,
    matmul,
    parse_window,
)
from hlo_tools.hlo.attributes import iterate_attributes, parse_integers, parse_json
from hlo_tools.hlo.module import Computation, Instruction
from hlo_tools.hlo.shape import Shape


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
    "divide": 14, "remainder": 23, "power": 84, "sine": 148, "cosine": 147, "tan": 169, "atan2": 60,
    "sign": 7, "exponential": 4, "log": 4, "tanh": 4, "logistic": 16, "erf": 38, "sqrt": 12,
    "rsqrt": 9, "cbrt": 17, "log-plus-one": 9, "exponential-minus-one": 9,
}  # fmt: skip
"""Vector instructions behind one register of f32 results; 1 for what is not listed.

Counted in the bundles that libtpu 0.0.52 writes for one-operation kernels on v5e (VALU per VSTORE
of `hlo-static-per-bundle-utilization.txt`), and at least 4 for an instruction of the transcendental
unit, of which there is one for four vector units."""
INTEGER_COST = {"divide": 85, "remainder": 80}
"""The same for 32-bit integers."""

MAX_MATMULS = 1 << 12
"""How many dots one fusion is taken to hold: fusions that call each other could make it endless."""

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
            matmuls=tuple(matmuls[:MAX_MATMULS]),
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
        costs = VECTOR_COST if shape.is_float else INTEGER_COST
        cost = costs.get(opcode, 1) * _padded_elements(shape)
        return Work(flops=shape.element_count, vector_elements=cost)
    if opcode in TRANSCENDENTAL:
        cost = VECTOR_COST.get(opcode, 1) * _padded_elements(shape)
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
        sizes = parse_window(instruction.attribute("window") or "").sizes
        times = results * max(0, prod(sizes) - 1)
        # Windows overlap: a doubling scheme takes log2(size) steps in each dimension.
        steps = sum((size - 1).bit_length() for size in sizes if size > 1)
        wide = max(
            _padded_elements(operands[0].shape), _padded_elements(_first_leaf(instruction.shape))
        )
        padded = wide * steps
    elif opcode == "select-and-scatter":
        source = operands[1].shape.element_count if len(operands) > 1 else results
        window = prod(parse_window(instruction.attribute("window") or "").sizes)
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
    size = dot_size(attributes, lhs, rhs, lhs.element_type)
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
    size = convolution_size(attributes, lhs, rhs, out, first.element_type)
    return Work(flops=size.flops, matmuls=(size,)) if size else None

"""What kernels for TPU compute in another way than functions on arrays."""

from collections.abc import Mapping
from types import MappingProxyType

from translators.emit.emission import Emission, Rule, Steps, UnsupportedError
from translators.emit.pallas.emission import StepEmission
from translators.emit.pallas.reading import steps
from translators.emit.reductions import RULES as REDUCTIONS
from translators.emit.reductions import combined, reduced, scan_any, single_op
from translators.emit.shaping import RULES as SHAPING
from translators.graph.graph import Op
from translators.graph.types import I1, element_of

# Of regions with a single op, those that a TPU reduces by itself.
_REDUCED = frozenset(
    (
        *("arith.addf", "arith.addi", "arith.maximumf", "arith.minimumf"),
        *("arith.maxnumf", "arith.minnumf", "arith.maxsi", "arith.minsi"),
    )
)
# By themselves they give NaN where an element is.
_STRICT: Mapping[str, str] = MappingProxyType(
    {"arith.maxnumf": "jnp.max", "arith.minnumf": "jnp.min"}
)
# Conditions are reduced as integers. (`jnp.all` and `jnp.any` compile to reductions of `float64`
# where types of 64 bits are on.)
_OF_CONDITIONS: Mapping[str, str] = MappingProxyType(
    {
        "arith.andi": "jnp.min({0}) != 0",
        "arith.ori": "jnp.max({0}) != 0",
        "arith.xori": "jnp.sum({0}, dtype=jnp.int32) & 1 != 0",
        "arith.addi": "jnp.sum({0}, dtype=jnp.int32) & 1 != 0",
    }
)


def _reduce(e: Emission, op: Op) -> Steps | None:
    single = single_op(op.regions[0]) if len(op.operands) == 1 else ""
    if element_of(op.operands[0].type) == I1 and single in _OF_CONDITIONS:
        _reduce_conditions(e, op, _OF_CONDITIONS[single])
        return None
    if single in _STRICT and op in steps(e).strict:
        term = e.spread(e.term(op.operands[0]))
        along = op.integer("axis") - len(term.shape)
        reduced(e, op, 0, f"{_STRICT[single]}({term.text}, axis={along})", term)
        return None
    if single in _REDUCED:
        return REDUCTIONS["tt.reduce"](e, op)
    return combined(e, op)


def _reduce_conditions(e: Emission, op: Op, template: str) -> None:
    term = e.spread(e.term(op.operands[0]))
    along = op.integer("axis") - len(term.shape)
    numbers = f"{term.text}.astype(jnp.int32), axis={along}"
    reduced(e, op, 0, template.format(numbers), term)


def _scan(e: Emission, op: Op) -> Steps:
    return scan_any(e, op)


def _program_id(e: Emission, op: Op) -> None:
    assert isinstance(e, StepEmission)
    try:
        SHAPING["tt.get_program_id"](e, op)
    except UnsupportedError as error:
        # What follows from it may be known all the same.
        e.untold[op.result] = error


RULES: Mapping[str, Rule] = MappingProxyType(
    {"tt.reduce": _reduce, "tt.scan": _scan, "tt.get_program_id": _program_id}
)

# Functions of the preamble in another form. What is rolled moves by whole registers.
HELPERS: Mapping[str, str] = MappingProxyType(
    {
        "_greatest": '''
def _greatest(x, axis):
    """The greatest number along `axis`; NaN only where all elements are."""
    nan = jnp.isnan(x)
    greatest = jnp.max(jnp.where(nan, -jnp.inf, x), axis)
    all_are = jnp.min(jnp.where(nan, 1.0, 0.0), axis) > 0.0
    return jnp.where(all_are, jnp.nan, greatest)
''',
        "_least": '''
def _least(x, axis):
    """The least number along `axis`; NaN only where all elements are."""
    nan = jnp.isnan(x)
    least = jnp.min(jnp.where(nan, jnp.inf, x), axis)
    all_are = jnp.min(jnp.where(nan, 1.0, 0.0), axis) > 0.0
    return jnp.where(all_are, jnp.nan, least)
''',
        "_reduce": '''
def _reduce(combine, values, axis):
    """Combines neighbours along `axis` until one element is left; keeps their order."""
    axis %= values[0].ndim
    size = values[0].shape[axis]
    step = 1
    while step < size:
        values = combine(*values, *(jnp.roll(each, -step, axis) for each in values))
        step *= 2
    return tuple(lax.index_in_dim(each, 0, axis, keepdims=False) for each in values)
''',
        "_scan": '''
def _scan(combine, values, axis, reverse):
    """Combines each element along `axis` with all before it, or behind it."""
    shape = values[0].shape
    place = lax.broadcasted_iota(jnp.int32, shape, axis)
    step = 1
    while step < shape[axis]:
        shift = -step if reverse else step
        others = tuple(jnp.roll(each, shift, axis) for each in values)
        found = combine(*others, *values)
        inside = place < shape[axis] - step if reverse else place >= step
        values = tuple(jnp.where(inside, new, old) for new, old in zip(found, values, strict=True))
        step *= 2
    return values
''',
    }
)

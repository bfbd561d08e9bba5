"""What becomes of each op where its values are held in other types.

A rule appends ops to the site's region and gives what the results of the kernel's op are held as.
"""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TypeAlias

from translators.emit.pallas.elements.conversions import odd
from translators.emit.pallas.elements.held_types import held_element, in_memory, is_narrow
from translators.emit.pallas.elements.site import Site, converted
from translators.graph.graph import AttributeValue, Value
from translators.graph.types import (
    BF16,
    F16,
    F32,
    I1,
    I8,
    I32,
    I64,
    DescriptorType,
    ElementType,
    FloatType,
    IntType,
    PointerType,
    element_of,
    shape_of,
    with_element,
)

Rule: TypeAlias = Callable[[Site], Sequence[Value]]

# What moves values, or takes them in any type.
_MOVES = (
    *("tt.broadcast", "tt.expand_dims", "tt.reshape", "tt.trans", "tt.join", "tt.split", "tt.cat"),
    *("tt.gather", "tt.histogram", "tt.addptr", "tt.call", "scf.if", "scf.for", "scf.while"),
    *("arith.select", "ub.poison", "tt.print", "tt.assert", "tt.make_tensor_descriptor"),
    *("scf.yield", "scf.condition", "tt.return", "tt.reduce.return", "tt.scan.return"),
    "tt.map_elementwise.return",
)
# Of floats, with results that the operands' type has.
_EXACT = frozenset(
    (
        *("arith.negf", "arith.remf", "arith.maximumf", "arith.minimumf", "arith.maxnumf"),
        *("arith.minnumf", "tt.clampf", "math.absf", "math.copysign", "math.floor", "math.ceil"),
        *("math.trunc", "math.round", "math.roundeven"),
    )
)
_ROUNDED = (
    *("arith.addf", "arith.subf", "arith.mulf", "arith.divf", "math.acos", "math.acosh"),
    *("math.asin", "math.asinh", "math.atan", "math.atan2", "math.atanh", "math.cbrt", "math.cos"),
    *("math.cosh", "math.erf", "math.erfc", "math.exp", "math.exp2", "math.expm1", "math.fma"),
    *("math.fpowi", "math.log", "math.log10", "math.log1p", "math.log2", "math.powf"),
    *("math.rsqrt", "math.sin", "math.sincos", "math.sinh", "math.sqrt", "math.tan", "math.tanh"),
    "tt.extern_elementwise",
)
_TESTS = ("arith.cmpf", "math.isfinite", "math.isinf", "math.isnan")
# What every generation computes on `bf16`, or widens itself (docs/pallas-capabilities.md).
_ON_BF16 = frozenset(
    (
        *("arith.negf", "arith.maximumf", "arith.minimumf", "arith.maxnumf", "arith.minnumf"),
        *("math.absf", "math.floor", "math.ceil", "math.trunc", "math.round", "math.roundeven"),
        *("arith.addf", "arith.subf", "arith.mulf", "arith.divf", "math.cos", "math.erf"),
        *("math.exp", "math.exp2", "math.log", "math.rsqrt", "math.sin", "math.sqrt"),
        *("math.tanh", "arith.cmpf", "math.isnan"),
    )
)
# Of integers held with their sign: the result wraps around, or it has no need to.
_WRAPPED = (
    *("arith.addi", "arith.subi", "arith.muli", "arith.shli", "arith.divsi", "arith.remsi"),
    *("arith.floordivsi", "arith.ceildivsi", "math.absi"),
)
_UNWRAPPED = (
    *("arith.andi", "arith.ori", "arith.xori", "arith.shrsi", "arith.maxsi", "arith.minsi"),
    *("arith.maxui", "arith.minui", "arith.cmpi"),
)
_LIMITS = ("arith.maxsi", "arith.minsi")
_UNSIGNED = ("arith.divui", "arith.remui", "arith.shrui", "arith.ceildivui", "math.ctpop")
# Where each op that writes to memory takes what it writes.
_STORES = MappingProxyType(
    {"tt.store": 1, "tt.descriptor_store": 1, "tt.descriptor_scatter": 3, "tt.descriptor_reduce": 1}
)


def copied(site: Site) -> Sequence[Value]:
    """The op itself, on held values."""
    return site.copy(site.operands, site.result_types).results


def apply(site: Site) -> Sequence[Value]:
    """The rule of an op; without one, the op itself where nothing about it is narrow."""
    return RULES.get(site.op.name, _plain)(site)


def _plain(site: Site) -> Sequence[Value]:
    values = (*site.op.operands, *site.op.results)
    narrow = next((each for each in values if is_narrow(element_of(each.type))), None)
    if narrow is not None:
        raise site.refused(f"of `{element_of(narrow.type)}` has no form that TPUs compute")
    return copied(site)


def _constant(site: Site) -> Sequence[Value]:
    """Numbers as the kernel's type has them, which the text may give with fewer digits."""
    element = site.given()
    value = site.op.attributes["value"]
    if isinstance(element, FloatType):
        value = converted(value, element)
    return site.copy((), site.result_types, value=value).results


def _spread(site: Site) -> Sequence[Value]:
    """Between a single number and a tensor, which may be held differently."""
    (value,) = site.operands
    element = element_of(value.type)
    assert element is not None
    return (site.held(site.copy((value,), (site.typed(0, element),)).result),)


# Floats


def _floats(site: Site) -> Sequence[Value]:
    """Computes in `f32`, and rounds where the kernel does."""
    name, taken = site.op.name, site.taken(0)
    if not isinstance(taken, FloatType):
        return _plain(site)
    tensor = bool(shape_of(site.op.operands[0].type))
    if taken == F32 or (taken == BF16 and tensor and name in _ON_BF16):
        return copied(site)
    operands = [
        site.cast(each, F32) if isinstance(element_of(each.type), FloatType) else each
        for each in site.operands
    ]
    real = [isinstance(site.given(index), FloatType) for index in range(len(site.op.results))]
    types = [
        site.typed(index, F32) if each else site.result_types[index]
        for index, each in enumerate(real)
    ]
    results = site.copy(operands, types).results
    if not all(real):
        return results
    # Results of 8 bits saturate, so that no op on infinities is exact.
    exact = name in _EXACT and taken.width > 8
    end = site.held if exact else site.rounded
    return [end(each, index) for index, each in enumerate(results)]


def _float_to_float(site: Site) -> Sequence[Value]:
    source, target = site.taken(0), site.given()
    assert isinstance(source, FloatType)
    assert isinstance(target, FloatType)
    if _has_all(target, source):
        return (site.held(site.operands[0]),)
    return (site.rounded(site.operands[0], rounding=site.op.text("rounding", "rtne")),)


def _has_all(wide: FloatType, narrow: FloatType) -> bool:
    """Whether one format has all numbers of another."""
    least = narrow.smallest_exponent - narrow.precision
    return (
        wide.precision >= narrow.precision
        and wide.smallest_exponent - wide.precision <= least
        and wide.largest >= narrow.largest
    )


def _from_integer(site: Site) -> Sequence[Value]:
    source, target = site.taken(0), site.given()
    assert isinstance(source, IntType)
    if target == F32 and not is_narrow(source):
        return copied(site)
    name, value = site.op.name, site.operands[0]
    if is_narrow(source) and name == "arith.uitofp":
        name, value = "arith.sitofp", site.unsigned(0)
    if source == I64 and name == "arith.sitofp":
        source, value = I32, site.cast(value, I32)
    if source == I32 and target == BF16:
        value = odd(site, value, signed=name == "arith.sitofp")
    return (site.rounded(site.make(name, (value,), site.typed(0, F32))),)


def _to_integer(site: Site) -> Sequence[Value]:
    target = site.given()
    assert isinstance(target, IntType)
    value = site.cast(site.operands[0], F32)
    if not is_narrow(target):
        return site.copy((value,), site.result_types).results
    signed = site.op.name == "arith.fptosi"
    least, most = (target.smallest, target.largest) if signed else (0, (1 << target.width) - 1)
    found = site.make("arith.fptosi", (value,), site.typed(0, I32))
    found = site.binary("arith.minsi", site.binary("arith.maxsi", found, least), most)
    return (found if signed else site.wrapped(found),)


# Integers


def _integers(site: Site) -> Sequence[Value]:
    return _narrow_integers(site, list(site.operands))


def _unsigned_integers(site: Site) -> Sequence[Value]:
    return _narrow_integers(site, [site.unsigned(each) for each in range(len(site.operands))])


def _narrow_integers(site: Site, operands: Sequence[Value]) -> Sequence[Value]:
    if not is_narrow(site.taken(0)):
        return copied(site)
    if site.op.name in _LIMITS:
        return (_limit(site),)
    found = site.copy(operands, site.result_types).result
    return (found if site.op.name in _UNWRAPPED else site.wrapped(found),)


def _limit(site: Site) -> Value:
    """The greater or lesser of two, by their difference.

    Of numbers that are widened for the comparison alone the compiler would compare the narrow
    ones, which it cannot.
    """
    left, right = site.operands
    apart = site.make("arith.subi", (left, right), left.type)
    apart = site.binary(site.op.name, apart, 0)
    return site.make("arith.addi", (right, apart), left.type)


def _extended(site: Site) -> Sequence[Value]:
    source, target = site.taken(0), site.given()
    signed = site.op.name == "arith.extsi"
    value = site.operands[0] if signed or source == I1 else site.unsigned(0)
    if element_of(value.type) == I32 and target != I64:
        return (value,)
    held = held_element(target, single=False)
    return (site.make(site.op.name, (value,), site.typed(0, held)),)


def _truncated(site: Site) -> Sequence[Value]:
    if not is_narrow(site.given()):
        return copied(site)
    return (site.wrapped(site.cast(site.operands[0], I32)),)


# Bits


def _bits(site: Site) -> Sequence[Value]:
    source, target = site.taken(0), site.given()
    if isinstance(source, PointerType):
        return _pointers(site, source, target)
    if not is_narrow(source) and not is_narrow(target):
        return copied(site)
    if source == target or (isinstance(source, IntType) and isinstance(target, IntType)):
        return (_between_integers(site, source, target),)
    if F16 in (source, target):
        bits = _half_of_bits if target == F16 else _bits_of_half
        return (bits(site, site.operands[0]),)
    value = site.cast(site.for_memory(0, source), source)
    found = site.make(site.op.name, (value,), site.typed(0, target))
    return (site.from_memory(found),)


def _between_integers(site: Site, source: ElementType, target: ElementType) -> Value:
    if target == I1:
        return site.compared("ne", site.operands[0], 0)
    return site.cast(site.operands[0], I32) if source == I1 else site.operands[0]


def _bits_of_half(site: Site, value: Value) -> Value:
    """The bits of numbers of `f16`, held as `f32`, as 16-bit integers."""
    bits = site.make("tt.bitcast", (value,), with_element(value.type, I32))
    magnitude = site.binary("arith.andi", bits, 0x7FFFFFFF)
    # The exponent's bias is 15 instead of 127, and 13 bits fewer follow.
    normal = site.binary("arith.shrsi", site.binary("arith.subi", magnitude, 112 << 23), 13)
    special = site.binary("arith.shrsi", magnitude, 13)
    special = site.binary("arith.andi", special, 0x3FF)
    nan = site.compared("sgt", magnitude, 0xFF << 23)
    special = site.chosen(nan, site.binary("arith.ori", special, 0x200), special)
    special = site.binary("arith.ori", special, 0x7C00)
    # Below 2**-14 the bits count units of 2**-24.
    units = site.make("math.absf", (value,), value.type)
    unit = site.make("arith.constant", (), value.type, {"value": float(1 << 24)})
    units = site.make("arith.mulf", (units, unit), value.type)
    units = site.make("arith.fptosi", (units,), bits.type)
    found = site.chosen(site.compared("slt", magnitude, 113 << 23), units, normal)
    found = site.chosen(site.compared("sge", magnitude, 0xFF << 23), special, found)
    sign = site.binary("arith.andi", site.binary("arith.shrsi", bits, 16), -0x8000)
    return site.make("arith.ori", (found, sign), bits.type)


def _half_of_bits(site: Site, value: Value) -> Value:
    """The numbers of `f16` that 16-bit integers are the bits of, held as `f32`."""
    real = with_element(value.type, F32)
    magnitude = site.binary("arith.andi", value, 0x7FFF)
    moved = site.binary("arith.shli", magnitude, 13)
    normal = site.binary("arith.addi", moved, 112 << 23)
    special = site.binary("arith.ori", moved, 0xFF << 23)
    found = site.chosen(site.compared("sge", magnitude, 0x7C00), special, normal)
    unit = site.make("arith.constant", (), real, {"value": 2.0**-24})
    units = site.make("arith.sitofp", (magnitude,), real)
    units = site.make("arith.mulf", (units, unit), real)
    units = site.make("tt.bitcast", (units,), value.type)
    found = site.chosen(site.compared("slt", magnitude, 0x400), units, found)
    sign = site.binary("arith.andi", value, -(1 << 31))
    found = site.make("arith.ori", (found, sign), value.type)
    return site.held(site.make("tt.bitcast", (found,), real))


def _pointers(site: Site, source: PointerType, target: ElementType) -> Sequence[Value]:
    """The same array as one of other elements, which must lie in memory as before."""
    assert isinstance(target, PointerType)
    one, other = source.pointee, target.pointee
    if in_memory(one) == in_memory(other):
        return tuple(site.operands)
    if in_memory(one) != one or in_memory(other) != other:
        raise site.refused(f"reads `{one}` in memory as `{other}`")
    return copied(site)


# Memory


def _pointee(site: Site) -> ElementType:
    type_ = site.op.operands[0].type
    if isinstance(type_, DescriptorType):
        return type_.block.element
    pointer = element_of(type_)
    assert isinstance(pointer, PointerType)
    return pointer.pointee


def _load(site: Site) -> Sequence[Value]:
    element = in_memory(_pointee(site))
    operands = list(site.operands)
    if site.op.name == "tt.load" and len(operands) > 2:
        operands[2] = site.for_memory(2, element)
    return (site.from_memory(site.copy(operands, (site.typed(0, element),)).result),)


def _store(site: Site) -> Sequence[Value]:
    element = _pointee(site)
    if site.op.name == "tt.descriptor_reduce" and element == F16:
        raise site.refused("of `f16` rounds in memory, which TPU kernels see as `f32`")
    place = _STORES[site.op.name]
    operands = list(site.operands)
    operands[place] = site.for_memory(place, in_memory(element))
    return site.copy(operands, ()).results


def _update(site: Site) -> Sequence[Value]:
    element = _pointee(site)
    if element == F16 and site.op.text("atomic_rmw_op") == "fadd":
        raise site.refused("of `f16` rounds in memory, which TPU kernels see as `f32`")
    memory = in_memory(element)
    operands = [site.operands[0], site.for_memory(1, memory), *site.operands[2:]]
    return (site.from_memory(site.copy(operands, (site.typed(0, memory),)).result),)


# Products and combinations


def _dot(site: Site) -> Sequence[Value]:
    left, right, result = site.taken(0), site.taken(1), site.given()
    operands = list(site.operands)
    if isinstance(left, IntType):
        if left != I8 or right != I8 or result != I32:
            raise site.refused(f"of `{left}` and `{right}` is none that TPUs compute")
        operands[:2] = [site.for_memory(0, I8), site.for_memory(1, I8)]
        return site.copy(operands, site.result_types).results
    if F16 not in (left, right, result):
        return copied(site)
    changes: dict[str, AttributeValue] = {}
    if left == right == F16:
        # They are numbers of that type; the emission keeps them in `f32`.
        operands[:2] = [
            site.make("arith.truncf", (each,), with_element(each.type, F16))
            for each in operands[:2]
        ]
    elif F16 in (left, right):
        # All products of `f16` are exact in `f32`.
        operands[:2] = [site.cast(each, F32) for each in operands[:2]]
        changes["inputPrecision"] = "ieee"
    if result in (F16, F32):
        return (site.rounded(site.copy(operands, (site.typed(0, F32),), **changes).result),)
    return site.copy(operands, site.result_types, **changes).results


def _combined(site: Site) -> Sequence[Value]:
    """Regions compute on single numbers, and the tensors are held as these are."""
    arguments = site.regions[0].arguments[: len(site.operands)]
    elements = [_element(each) for each in arguments]
    operands = [
        site.cast(each, element) for each, element in zip(site.operands, elements, strict=True)
    ]
    ends = [_element(each) for each in site.regions[0].terminator.operands]
    types = [site.typed(index, each) for index, each in enumerate(ends)]
    results = site.copy(operands, types).results
    end = site.rounded if site.op in site.forms.sums else site.held
    return [end(each, index) for index, each in enumerate(results)]


def _element(value: Value) -> ElementType:
    element = element_of(value.type)
    assert element is not None
    return element


def _table() -> Mapping[str, Rule]:
    found: dict[str, Rule] = dict.fromkeys(_MOVES, copied)
    found |= dict.fromkeys((*_EXACT, *_ROUNDED, *_TESTS), _floats)
    found |= dict.fromkeys((*_WRAPPED, *_UNWRAPPED), _integers)
    found |= dict.fromkeys(_UNSIGNED, _unsigned_integers)
    found |= dict.fromkeys(_LOADS, _load)
    found |= dict.fromkeys(_STORES, _store)
    found |= {
        "arith.constant": _constant,
        "tt.splat": _spread,
        "tt.unsplat": _spread,
        "arith.extf": _float_to_float,
        "arith.truncf": _float_to_float,
        "tt.fp_to_fp": _float_to_float,
        "arith.sitofp": _from_integer,
        "arith.uitofp": _from_integer,
        "arith.fptosi": _to_integer,
        "arith.fptoui": _to_integer,
        "arith.extsi": _extended,
        "arith.extui": _extended,
        "arith.trunci": _truncated,
        "arith.bitcast": _bits,
        "tt.bitcast": _bits,
        "tt.atomic_rmw": _update,
        "tt.dot": _dot,
        "tt.reduce": _combined,
        "tt.scan": _combined,
        "tt.map_elementwise": _combined,
    }
    return MappingProxyType(found)


_LOADS = ("tt.load", "tt.descriptor_load", "tt.descriptor_gather")
RULES: Mapping[str, Rule] = _table()

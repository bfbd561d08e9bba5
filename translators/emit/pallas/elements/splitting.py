"""The kernel with its integers of 64 bits in two words, where they need that many.

An index that fits into 32 bits, or of which only so many matter, stays what it is (`narrowing`).
Arrays of 64-bit integers are two arrays of words, of which the upper one may never be read.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TypeAlias

from translators.access.analysis import Analysis
from translators.access.states import Integer
from translators.emit.emission import UnsupportedError
from translators.emit.narrowing import narrowed
from translators.emit.pallas.elements import words as arithmetic
from translators.emit.pallas.elements.checking import verify_complete
from translators.emit.pallas.elements.conversions import from_words, to_words
from translators.emit.pallas.elements.place import Place
from translators.emit.pallas.elements.words import Words, word_types
from translators.graph.copying import Copier
from translators.graph.graph import (
    Function,
    Module,
    Op,
    Region,
    Value,
    make_module,
    make_region,
    walk,
)
from translators.graph.types import (
    F32,
    F64,
    I32,
    I64,
    PointerType,
    Type,
    element_of,
    with_element,
)

_POINTER_TO_WIDE = PointerType(I64)
_POINTER_TO_WORD = PointerType(I32)
# The same for each word.
_WORDWISE = frozenset(
    (
        *("tt.splat", "tt.unsplat", "tt.broadcast", "tt.expand_dims", "tt.reshape", "tt.trans"),
        *("tt.join", "tt.split", "tt.cat", "tt.gather", "tt.addptr", "tt.load", "tt.store"),
        *("arith.select", "arith.andi", "arith.ori", "arith.xori", "ub.poison"),
    )
)
# Whose low words depend on low words alone.
_RING = frozenset((*_WORDWISE, "arith.addi", "arith.subi", "arith.muli"))
# Which take low words, whatever the upper ones are.
_ADDRESSES = frozenset(("tt.ptr_to_int", "tt.int_to_ptr", "tt.make_tensor_descriptor", "tt.print"))
_LOOPS = ("scf.for", "scf.while")
_FOLDS = ("tt.reduce", "tt.scan")
_STRUCTURED = frozenset((*_LOOPS, *_FOLDS, "scf.if", "tt.map_elementwise", "tt.call"))
_ENDS = frozenset(
    (
        *("scf.yield", "scf.condition", "tt.return", "tt.reduce.return", "tt.scan.return"),
        "tt.map_elementwise.return",
    )
)
# Functions that are known by name, but for those on the halves of a seed.
_LIBRARY = re.compile(r"triton\.language\.(?!random\.philox__)")
_LIMITS = MappingProxyType(
    {"arith.maxsi": "sgt", "arith.minsi": "slt", "arith.maxui": "ugt", "arith.minui": "ult"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """A kernel in words.

    Attributes:
      module: the kernel. Of an argument of 64 bits it takes the lower word in its place, and the
        upper one behind all arguments.
      uppers: for each argument of which it takes two words, where the upper one is.
    """

    module: Module
    uppers: Mapping[int, int]


def split(module: Module, analysis: Analysis, given: Mapping[int, int]) -> Split | None:
    """The kernel without integers of 64 bits that need more than 32; `None` if there are none.

    Functions whose bodies have no such form are left out.

    Args:
      module: the kernel, and what it calls.
      analysis: its accesses.
      given: the arguments that are numbers known now.

    Raises:
      UnsupportedError: an op on such integers has no form in words; at its line.
    """
    kernel = module.kernel
    known = {kernel.arguments[index]: number for index, number in given.items()}
    narrow = narrowed(module, analysis)
    copier = _Splitter(kernel, {*narrow, *known}, known, analysis)
    if not copier.needed and not any(
        element_of(value.type) == I64
        for function in module.functions.values()
        if function is not kernel
        for value in _values(function)
    ):
        return None
    uppers = [index for index, each in enumerate(kernel.arguments) if copier.is_split(each)]
    first = [copier.types_of(each)[0] for each in kernel.arguments]
    last = [copier.types_of(kernel.arguments[index])[1] for index in uppers]
    names = [each.name for each in kernel.arguments]
    body = make_region([*first, *last], [*names, *(names[index] for index in uppers)])
    copier.values.update(zip(kernel.arguments, body.arguments, strict=False))
    for place, index in enumerate(uppers, len(names)):
        copier.uppers[kernel.arguments[index]] = body.arguments[place]
    copier.copy(kernel.body, body)
    hints = (*kernel.hints, *(MappingProxyType({}) for _ in uppers)) if kernel.hints else ()
    functions = [replace(kernel, body=body, hints=hints)]
    for each in module.functions.values():
        if each is not kernel:
            with suppress(UnsupportedError):
                functions.append(_in_words(each, analysis))
    made = make_module(functions, module.entry)
    verify_complete(made)
    return Split(
        module=made, uppers={index: place for place, index in enumerate(uppers, len(names))}
    )


def _values(function: Function) -> Iterable[Value]:
    yield from function.arguments
    for op in walk(function.body):
        yield from op.results
        for region in op.regions:
            yield from region.arguments


def _in_words(function: Function, analysis: Analysis) -> Function:
    """A function that the kernel calls, of whose integers nothing is known."""
    copier = _Splitter(function, set(), {}, analysis)
    types = [type_ for each in function.arguments for type_ in copier.types_of(each)]
    body = make_region(types)
    copier.enter(function.arguments, body.arguments)
    copier.copy(function.body, body)
    results = [
        type_
        for each in function.result_types
        for type_ in (word_types(each) if element_of(each) == I64 else (each,))
    ]
    return replace(function, body=body, hints=(), result_types=tuple(results))


class _Splitter(Copier):
    """Copies in words.

    Attributes:
      uppers: for values of two words the upper one; `values` has the lower one.
    """

    def __init__(
        self, function: Function, narrow: set[Value], known: Mapping[Value, int], analysis: Analysis
    ) -> None:
        super().__init__()
        self.uppers: dict[Value, Value] = {}
        self._known = known
        self._analysis = analysis
        ops = list(walk(function.body))
        self._owners = {region: op for op in ops for region in op.regions}
        self._ends = {region.terminator: op for region, op in self._owners.items()}
        self._wide = {
            each
            for each in _values(function)
            if element_of(each.type) == I64 and each not in narrow and not _is_address(each)
        }
        self._close(ops)

    @property
    def needed(self) -> bool:
        """Whether anything is in two words."""
        return bool(self._wide) or any(
            _is_pointer(each) for each in self._analysis.kernel.arguments
        )

    def _close(self, ops: Sequence[Op]) -> None:
        """Makes what a loop or a combination carries wide throughout, or not at all."""
        for op in reversed(ops):
            for slot in _slots(op):
                if not self._wide.isdisjoint(slot):
                    self._wide.update(slot)
            if op.name == "tt.call":
                self._wide.update(each for each in op.results if element_of(each.type) == I64)

    # Values

    def is_split(self, value: Value) -> bool:
        """Whether a value becomes two."""
        return value in self._wide or _is_pointer(value)

    def types_of(self, value: Value) -> Sequence[Type]:
        """The types of what a value becomes."""
        if _is_pointer(value):
            return (with_element(value.type, _POINTER_TO_WORD),) * 2
        return word_types(value.type) if value in self._wide else (value.type,)

    def enter(self, old: Sequence[Value], new: Sequence[Value]) -> None:
        """Takes down what values have become, one or two each."""
        rest = iter(new)
        for each in old:
            self.values[each] = next(rest)
            if self.is_split(each):
                self.uppers[each] = next(rest)

    def words(self, place: Place, value: Value) -> Words:
        """A value of 64 bits in two words."""
        if value in self.uppers:
            return Words(self.values[value], self.uppers[value])
        number = self.number(value)
        if number is not None:
            return arithmetic.constant(place, number, value.type)
        fits = place.make("arith.trunci", (self.values[value],), with_element(value.type, I32))
        return arithmetic.signed(place, fits)

    def number(self, value: Value) -> int | None:
        """The number that a value is in every lane, where that is known."""
        if value in self._known:
            return self._known[value]
        state = self._analysis.states.get(value)
        if isinstance(state, Integer) and not state.assumptions:
            return state.expression.value
        owner = value.owner
        if isinstance(owner, Op) and owner.name == "arith.constant":
            number = owner.attributes["value"]
            return number if isinstance(number, int) else None
        return None

    def low(self, place: Place, value: Value) -> Value:
        """A value of which only the low word matters, in the type that the kernel has."""
        found = self.values[value]
        if value not in self._wide:
            return found
        return place.make("arith.extsi", (found,), value.type)

    # Regions and ops

    def opened(self, inner: Region) -> Region:
        """A region that is entered with words."""
        types: list[Type] = []
        names: list[str] = []
        for each in inner.arguments:
            found = self.types_of(each)
            types += found
            names += [each.name] * len(found)
        made = make_region(types, names)
        self.enter(inner.arguments, made.arguments)
        return made

    def copied(self, op: Op, regions: Sequence[Region], region: Region) -> Sequence[Value]:
        """What becomes of an op's results, of two words the lower one."""
        place = Place(op=op, regions=regions, region=region)
        if op.name in _STRUCTURED or op.name in _ENDS:
            return self._structured(place)
        if not any(self.is_split(each) for each in (*op.operands, *op.results)):
            return place.copy(
                [self.values[each] for each in op.operands], [each.type for each in op.results]
            ).results
        rule = _RULES.get(op.name)
        if op.name in _ADDRESSES or (
            op.name in _RING
            and not any(self.is_split(each) for each in (*op.results, *_pointers(op)))
        ):
            return place.copy(
                [self.low(place, each) for each in op.operands], [each.type for each in op.results]
            ).results
        if rule is not None:
            return self._given(place, rule(self, place))
        if op.name == "tt.load":
            return self._loaded(place)
        if op.name in _WORDWISE:
            return self._wordwise(place)
        raise place.refused("of integers of 64 bits has no form in 32 bits")

    def _given(self, place: Place, found: Words | Value) -> Sequence[Value]:
        (result,) = place.op.results
        if isinstance(found, Value):
            return (found,)
        if result in self._wide:
            self.uppers[result] = found.high
            return (found.low,)
        return (place.make("arith.extsi", (found.low,), result.type),)

    def _loaded(self, place: Place) -> Sequence[Value]:
        """Both words, or the lower one where that is all that matters."""
        result = place.op.result
        type_ = (with_element(result.type, I32),)
        low = place.copy(self._words_of(place, 0), type_).result
        if result not in self._wide:
            return (place.make("arith.extsi", (low,), result.type),)
        self.uppers[result] = place.copy(self._words_of(place, 1), type_).result
        return (low,)

    def _wordwise(self, place: Place) -> Sequence[Value]:
        """The op on the lower words, and on the upper ones."""
        results = place.op.results
        types = [self.types_of(each) for each in results]
        lower, upper = (
            place.copy(self._words_of(place, which), [each[which] for each in types]).results
            for which in (0, 1)
        )
        self.uppers.update(zip(results, upper, strict=True))
        return lower

    def _words_of(self, place: Place, which: int) -> list[Value]:
        """A word of each operand; of those that are no words, themselves."""
        op = place.op
        found: list[Value] = []
        for index, value in enumerate(op.operands):
            if element_of(value.type) == I64 and index != _INDICES.get(op.name):
                words = self.words(place, value)
                found.append(words.high if which else words.low)
            else:
                pointer = which and _is_pointer(value)
                found.append(self.uppers[value] if pointer else self.values[value])
        return found

    def _structured(self, place: Place) -> Sequence[Value]:
        """An op with regions, or the end of one, that hands words on."""
        op = place.op
        wide = any(each in self._wide for each in (*op.operands, *op.results))
        if op.name == "tt.call" and wide and _LIBRARY.match(op.text("callee")):
            raise place.refused("of integers of 64 bits has no form in 32 bits")
        if op.name == "scf.for" and any(self.is_split(each) for each in op.operands[:3]):
            raise place.refused("counts in integers of 64 bits")
        operands: list[Value] = []
        for value, target in zip(op.operands, self._targets(op), strict=True):
            if _is_pointer(value):
                operands += (self.values[value], self.uppers[value])
            elif target:
                found = self.words(place, value)
                operands += (found.low, found.high)
            else:
                operands.append(self.low(place, value))
        types = [type_ for each in op.results for type_ in self.types_of(each)]
        made = place.copy(operands, types)
        self.enter(op.results, made.results)
        return [self.values[each] for each in op.results]

    def _targets(self, op: Op) -> list[bool]:
        """Which operands are handed on to what takes two words."""
        owner = self._ends.get(op)
        if op.name in ("tt.call", "tt.return"):
            return [element_of(each.type) == I64 for each in op.operands]
        if op.name == "scf.for":
            return [False] * 3 + self._are_wide(op.regions[0].arguments[1:])
        if op.name == "scf.while" or op.name in (*_FOLDS, "tt.map_elementwise"):
            return self._are_wide(op.regions[0].arguments)[: len(op.operands)]
        if op.name == "scf.if":
            return [False]
        assert owner is not None
        if op.name == "scf.condition":
            return [False, *self._are_wide(owner.results)]
        if owner.name == "scf.while" or owner.name in _FOLDS:
            return self._are_wide(owner.regions[0].arguments)[: len(op.operands)]
        return self._are_wide(owner.results)

    def _are_wide(self, values: Sequence[Value]) -> list[bool]:
        return [each in self._wide for each in values]


# The operand of an op on words that says where, and so is one for both.
_INDICES: Mapping[str, int] = MappingProxyType({"tt.addptr": 1, "tt.gather": 1})


def _pointers(op: Op) -> Sequence[Value]:
    """The pointers that an op takes."""
    return [each for each in op.operands if _is_pointer(each)]


def _is_pointer(value: Value) -> bool:
    """Whether a value points to integers of 64 bits."""
    return element_of(value.type) == _POINTER_TO_WIDE


def _is_address(value: Value) -> bool:
    """Whether a value is the address of an array, which is only asked whether there is one."""
    return isinstance(value.owner, Op) and value.owner.name == "tt.ptr_to_int"


def _slots(op: Op) -> Iterable[tuple[Value, ...]]:
    """The values that are one after another in the same place of an op."""
    if op.name == "scf.for":
        yield from zip(op.results, op.regions[0].arguments[1:], strict=True)
    elif op.name == "scf.while":
        before, after = (region.arguments for region in op.regions)
        yield from zip(op.results, after, strict=True)
        yield from ((each,) for each in before)
    elif op.name in _FOLDS:
        count = len(op.results)
        arguments = op.regions[0].arguments
        yield from zip(op.results, arguments[:count], arguments[count:], strict=True)


_Rule: TypeAlias = Callable[[_Splitter, Place], Words | Value]


def _binary(function: Callable[[Place, Words, Words], Words]) -> _Rule:
    def rule(s: _Splitter, place: Place) -> Words:
        a, b = (s.words(place, each) for each in place.op.operands)
        return function(place, a, b)

    return rule


def _constant(s: _Splitter, place: Place) -> Words:
    return arithmetic.constant(place, place.op.attributes["value"], place.op.result.type)


def _compare(s: _Splitter, place: Place) -> Value:
    a, b = (s.words(place, each) for each in place.op.operands)
    return arithmetic.compared(place, place.op.text("predicate"), a, b)


def _limit(s: _Splitter, place: Place) -> Words:
    a, b = (s.words(place, each) for each in place.op.operands)
    condition = arithmetic.compared(place, _LIMITS[place.op.name], a, b)
    return arithmetic.chosen(place, condition, a, b)


def _magnitude(s: _Splitter, place: Place) -> Words:
    a = s.words(place, place.op.operands[0])
    zero = arithmetic.constant(place, 0, place.op.result.type)
    negative = place.compared("slt", a.high, 0)
    return arithmetic.chosen(place, negative, arithmetic.subtracted(place, zero, a), a)


def _extend(s: _Splitter, place: Place) -> Words:
    (value,) = place.op.operands
    found = s.values[value]
    if element_of(found.type) != I32:
        found = place.make(place.op.name, (found,), with_element(found.type, I32))
    signed = place.op.name == "arith.extsi"
    return arithmetic.signed(place, found) if signed else arithmetic.unsigned(place, found)


def _truncate(s: _Splitter, place: Place) -> Value:
    found = s.values[place.op.operands[0]]
    if place.given() == I32:
        return found
    return place.make("arith.trunci", (found,), place.op.result.type)


def _shift(s: _Splitter, place: Place) -> Words:
    value, count = place.op.operands
    bits = s.number(count)
    if bits is None or not bits >= 0:
        raise place.refused("of integers of 64 bits, by what is known only then, has no form")
    found = s.words(place, value)
    if place.op.name == "arith.shli":
        return arithmetic.shifted_left(place, found, bits)
    return arithmetic.shifted_right(place, place.op.name, found, bits)


def _from_integer(s: _Splitter, place: Place) -> Value:
    target, type_ = place.given(), place.op.result.type
    value = s.words(place, place.op.operands[0])
    signed = place.op.name == "arith.sitofp"
    found = from_words(place, value, signed=signed, narrow=target != F32)
    if target == F32:
        return found
    return place.make("tt.fp_to_fp", (found,), type_, {"rounding": "rtne"})


def _to_integer(s: _Splitter, place: Place) -> Words:
    (operand,) = place.op.operands
    value = s.values[operand]
    if place.taken(0) == F64:
        raise place.refused("of `f64` has no form that TPUs compute")
    if place.taken(0) != F32:
        value = place.make("arith.extf", (value,), with_element(value.type, F32))
    return to_words(place, value, signed=place.op.name == "arith.fptosi")


_RULES: Mapping[str, _Rule] = MappingProxyType(
    {
        **dict.fromkeys(("arith.shli", "arith.shrsi", "arith.shrui"), _shift),
        **dict.fromkeys(_LIMITS, _limit),
        **dict.fromkeys(("arith.sitofp", "arith.uitofp"), _from_integer),
        **dict.fromkeys(("arith.fptosi", "arith.fptoui"), _to_integer),
        "arith.addi": _binary(arithmetic.added),
        "arith.subi": _binary(arithmetic.subtracted),
        "arith.muli": _binary(arithmetic.multiplied),
        "arith.cmpi": _compare,
        "arith.constant": _constant,
        "arith.extsi": _extend,
        "arith.extui": _extend,
        "arith.trunci": _truncate,
        "math.absi": _magnitude,
    }
)

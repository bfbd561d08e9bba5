"""Greatest elements of rows that may as well be NaN where the row has one.

`tl.max` ignores NaN; a TPU's own reduction does not, and takes fewer operations. Where a row has a
NaN, a softmax is NaN all over, whatever was subtracted: that its greatest element is another one is
then nobody's business.

Two runs of a kernel are compared, one in which the reduction ignores NaN and one in which it gives
anything at all. They part at the first iteration whose row has a NaN, in that row alone. From there
on every value is followed: whether it may differ, and whether it is known to be NaN in both.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from translators.emit.reductions import single_op
from translators.graph.graph import Module, Op, Value, integers, walk
from translators.graph.types import FloatType, element_of, shape_of

_IGNORING = frozenset(("arith.maxnumf", "arith.minnumf"))
# What is NaN where an operand is.
_STRICT = frozenset(
    (
        *("arith.addf", "arith.subf", "arith.mulf", "arith.divf", "arith.negf", "arith.maximumf"),
        *("arith.minimumf", "arith.extf", "arith.truncf", "tt.fp_to_fp", "tt.precise_divf"),
        *("math.absf", "math.exp", "math.exp2", "math.log", "math.log2", "math.fma"),
    )
)
_STRICT_REDUCTIONS = frozenset(("arith.addf", "arith.mulf", "arith.maximumf", "arith.minimumf"))
_DIALECTS = ("arith.", "math.")
_ACROSS = -1
_NONE, _SOME, _ALL = range(3)


class _Seen(Exception):
    """It may be seen which of the two runs it is."""


@dataclass(frozen=True, slots=True)
class _State:
    """What is known of a value in the row in which the runs have parted.

    Attributes:
      differs: whether the runs may have other elements there.
      nan: how many of the row's elements are NaN in both runs.
      rows: for each axis which one of those that count the rows it is, or `_ACROSS`.
    """

    differs: bool
    nan: int
    rows: tuple[int, ...]


def may_be_nan(module: Module) -> frozenset[Op]:
    """The reductions by greatest or least number that may be NaN where an element is NaN.

    Args:
      module: a verified kernel.
    """
    found = set()
    for op in module.kernel.body.ops:
        inside = op.regions[0].ops if op.name == "scf.for" else (op,)
        for each in inside:
            if each.name == "tt.reduce" and single_op(each.regions[0]) in _IGNORING:
                try:
                    _Runs(each).compare(module.kernel.body.ops)
                except _Seen:
                    continue
                found.add(each)
    return frozenset(found)


class _Runs:
    """Two runs of a kernel that part at one reduction."""

    def __init__(self, reduction: Op) -> None:
        self._reduction = reduction
        (self._reduced,) = reduction.operands
        rank, axis = len(shape_of(self._reduced.type)), reduction.integer("axis")
        others = iter(range(rank - 1))
        self._rows = tuple(_ACROSS if each == axis else next(others) for each in range(rank))
        # Values without a state are the same in both runs.
        self._states: dict[Value, _State] = {}

    def compare(self, ops: Iterable[Op]) -> None:
        """Follows what differs to the end of the kernel.

        Raises:
          _Seen: something that may differ is written, or decides something.
        """
        self._part()
        for op in ops:
            if op.name != "scf.for":
                self._step(op)
            elif self._reduction in op.regions[0].ops:
                self._parting_loop(op)
            elif self._is_touched(op):
                self._loop(op, self._of(op.operands[3:]))
            if self._reduced in op.results:
                self._part()

    def _part(self) -> None:
        """The row has a NaN, the same in both runs."""
        self._states[self._reduced] = _State(False, _SOME, self._rows)

    def _of(self, values: Iterable[Value]) -> list[_State | None]:
        return [self._states.get(each) for each in values]

    def _put(self, value: Value, state: _State | None) -> None:
        if state is None or not (state.differs or state.nan):
            self._states.pop(value, None)
        else:
            self._states[value] = state

    # Loops

    def _parting_loop(self, op: Op) -> None:
        """The loop with the reduction: an iteration in which the runs part, and those after it."""
        body = op.regions[0]
        for argument in body.arguments:
            self._states.pop(argument, None)
        self._part()
        self._body(body.ops, parting=True)
        self._loop(op, self._of(body.terminator.operands))

    def _loop(self, op: Op, carried: Sequence[_State | None]) -> None:
        """Any number of iterations, beginning with what is carried."""
        if any(each and each.differs for each in self._of(op.operands[:3])):
            raise _Seen
        body = op.regions[0]
        while True:
            for argument, state in zip(body.arguments[1:], carried, strict=True):
                self._put(argument, state)
            self._body(body.ops, parting=False)
            ends = self._of(body.terminator.operands)
            joined = [_joined(*pair) for pair in zip(carried, ends, strict=True)]
            if joined == carried:
                break
            carried = joined
        for result, state in zip(op.results, carried, strict=True):
            self._put(result, state)

    def _body(self, ops: Sequence[Op], *, parting: bool) -> None:
        for op in ops[:-1]:
            self._step(op)
            if parting and self._reduced in op.results:
                self._part()

    def _is_touched(self, op: Op) -> bool:
        """Whether an op, or one inside of it, takes what may differ or is NaN."""
        inner = (each for region in op.regions for each in walk(region))
        return any(value in self._states for each in (op, *inner) for value in each.operands)

    # Ops

    def _step(self, op: Op) -> None:
        if op is self._reduction:
            rows = tuple(each for each in self._rows if each != _ACROSS)
            self._put(op.result, _State(True, _NONE, rows))
            return
        if not self._is_touched(op):
            for result in op.results:
                self._states.pop(result, None)
            return
        found = self._followed(op)
        if found is not None and found.nan == _ALL:
            found = replace(found, differs=False)
        for result in op.results:
            self._put(result, found)

    def _followed(self, op: Op) -> _State | None:
        """What an op makes of operands of which some have a state."""
        states = self._of(op.operands)
        single = states[0] if len(states) == 1 else None
        if op.name == "tt.dot":
            return self._multiplied(op, states)
        if op.name == "tt.reduce" and single is not None:
            return self._summed(op, single)
        if op.name in ("tt.splat", "tt.expand_dims", "tt.broadcast", "tt.trans"):
            assert single is not None
            return _moved(op, single)
        if op.name.startswith(_DIALECTS) or op.name in _STRICT:
            return self._elementwise(op, states)
        if self._decides(op):
            raise _Seen
        return None

    def _decides(self, op: Op) -> bool:
        """Whether an op, or one inside of it, takes what may differ."""
        inner = (each for region in op.regions for each in walk(region))
        states = (each for some in (op, *inner) for each in self._of(some.operands))
        return any(each is not None and each.differs for each in states)

    def _elementwise(self, op: Op, states: Sequence[_State | None]) -> _State | None:
        known = [each for each in states if each is not None]
        if len({each.rows for each in known}) > 1:
            self._forget(known)
            return None
        differs = any(each.differs for each in known)
        element = element_of(op.result.type) if len(op.results) == 1 else None
        nan = _NONE
        # The narrowest types have no NaN, or one that casts do not always give.
        if isinstance(element, FloatType) and element.width >= 16:
            if op.name in _STRICT:
                nan = max(each.nan for each in known)
            elif all(each and each.nan == _ALL for each in states[op.name == "arith.select" :]):
                nan = _ALL
        return _State(differs, nan, known[0].rows)

    def _forget(self, states: Iterable[_State]) -> None:
        """Forgets what is known to be NaN.

        Raises:
          _Seen: something may differ, and no longer in one row alone.
        """
        if any(each.differs for each in states):
            raise _Seen

    def _summed(self, op: Op, state: _State) -> _State | None:
        axis = op.integer("axis")
        if state.rows[axis] != _ACROSS:
            self._forget([state])
            return None
        rows = (*state.rows[:axis], *state.rows[axis + 1 :])
        nan = state.nan
        if single_op(op.regions[0]) in _STRICT_REDUCTIONS:
            if nan == _SOME and _ACROSS not in rows:
                nan = _ALL
        elif nan != _ALL or single_op(op.regions[0]) not in _IGNORING:
            nan = _NONE
        return _State(state.differs, nan, rows)

    def _multiplied(self, op: Op, states: Sequence[_State | None]) -> _State | None:
        """A product of matrices: what is NaN is so in a whole row, or column, of the result."""
        known = [each for each in states if each is not None]
        if any(len(each.rows) != 2 for each in known):
            self._forget(known)
            return None
        parts = []
        for place, state in enumerate(states[:2]):
            if state is None:
                continue
            outer = state.rows[place]
            if state.rows[1 - place] != _ACROSS:
                self._forget(known)
                return None
            nan = _ALL if state.nan == _SOME and outer != _ACROSS else state.nan
            floats = isinstance(element_of(op.result.type), FloatType)
            rows = (outer, _ACROSS) if place == 0 else (_ACROSS, outer)
            parts.append(_State(state.differs, nan if floats else _NONE, rows))
        if states[2] is not None:
            parts.append(states[2])
        if len({each.rows for each in parts}) > 1:
            self._forget(known)
            return None
        nan = max(each.nan for each in parts)
        return _State(any(each.differs for each in parts), nan, parts[0].rows)


def _moved(op: Op, state: _State) -> _State:
    """The same elements, or copies of them, elsewhere.

    Raises:
      _Seen: one row becomes several.
    """
    rows, shape = state.rows, shape_of(op.result.type)
    match op.name:
        case "tt.splat":
            rows = (_ACROSS,) * len(shape)
        case "tt.expand_dims":
            axis = op.integer("axis")
            rows = (*rows[:axis], _ACROSS, *rows[axis:])
        case "tt.trans":
            rows = tuple(rows[axis] for axis in integers(op.attributes, "order"))
        case _:
            before = shape_of(op.operands[0].type)
            if any(
                row != _ACROSS and size != old
                for row, size, old in zip(rows, shape, before, strict=True)
            ):
                raise _Seen
    return _State(state.differs, state.nan, rows)


def _joined(one: _State | None, other: _State | None) -> _State | None:
    """What holds of a value that is one or the other, the same one in both runs.

    Raises:
      _Seen: not in one row alone.
    """
    if one is None or other is None:
        some = one or other
        return _State(True, _NONE, some.rows) if some is not None and some.differs else None
    differs = one.differs or other.differs
    if one.rows != other.rows:
        if differs:
            raise _Seen
        return None
    nan = min(one.nan, other.nan)
    return _State(differs, nan, one.rows) if differs or nan else None

"""Runs over a kernel's ops once in order, over a loop's body until its guesses hold.

Structured ops are generators that ask for their regions to be walked; `_drive` keeps those that
wait on a stack, so that nesting costs no stack of Python's.
"""

from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TypeAlias

from translators.access.choices import Choice, is_free_of, one_of, renamed, values_in
from translators.access.descriptors import DESCRIPTOR_OPS, located
from translators.access.expression import Affine, constant, of
from translators.access.folds import FOLDS, fold
from translators.access.knowledge import Knowledge
from translators.access.loops import (
    Guess,
    Loop,
    Steady,
    Unfollowed,
    assumed,
    checked,
    first_guesses,
    loop_of,
    strengthened,
    unchanging,
)
from translators.access.resolving import Known, resolved
from translators.access.states import (
    ALWAYS,
    Condition,
    Described,
    Integer,
    Leftover,
    Pointer,
    State,
    UnknownPointer,
    both,
    negated,
    never,
)
from translators.access.transfer import results
from translators.graph.graph import Op, Region, Value, walk
from translators.graph.types import I1

# The accesses, each with where its mask stands among its operands if it can have one. Those
# through descriptors take no mask, but check the edges of the array.
ACCESS_OPS: Mapping[str, int | None] = MappingProxyType(
    {
        "tt.atomic_cas": None,
        "tt.atomic_load": 1,
        "tt.atomic_poll": None,
        "tt.atomic_rmw": 2,
        "tt.atomic_store": 2,
        "tt.descriptor_gather": None,
        "tt.descriptor_load": None,
        "tt.descriptor_reduce": None,
        "tt.descriptor_scatter": None,
        "tt.descriptor_store": None,
        "tt.load": 1,
        "tt.store": 2,
    }
)
# Deeper loops are walked once, with nothing assumed of what they carry: each level walks the
# levels inside it several times.
DEEPEST_LOOP = 6

_Walk: TypeAlias = Generator["_Walk", tuple[State | None, ...], tuple[State | None, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Visit:
    """An access in the state in which the kernel comes to it.

    Attributes:
      op: the access.
      pointer: where it leads in the lanes that take part.
      mask: which lanes take part; `None` if there is no mask. Through a descriptor those take
        part that lie in the array.
      padding: what is read outside of an array that is described.
      guard: what holds in every program and iteration that comes here.
      facts: integers that are at least zero here, such as a loop's bound less its counter.
      loops: the numbers of the loops around it, outermost first.
      assumptions: what `guard` and `facts` rest on.
    """

    op: Op
    pointer: State
    mask: Condition | None
    padding: str | None
    guard: Condition
    facts: tuple[Affine, ...]
    loops: tuple[int, ...]


@dataclass(slots=True)
class Walker:
    """The walk over one kernel.

    Attributes:
      known: the states of its values.
      most: how many iterations loops have at most, by number, where more is known than they say.
      visits: its accesses, by their op.
      loops: its loops, by number.
    """

    known: Knowledge
    most: Mapping[int, int] = field(default_factory=dict)
    visits: dict[Op, Visit] = field(default_factory=dict)
    loops: dict[int, Loop] = field(default_factory=dict)
    _numbers: dict[Op, int] = field(default_factory=dict)
    _returned: dict[Op, Value] = field(default_factory=dict)
    _guards: list[Condition] = field(default_factory=list)
    _facts: list[Affine] = field(default_factory=list)
    _inside: list[int] = field(default_factory=list)

    def run(self, body: Region) -> None:
        """Walks the body of a kernel."""
        self._numbers = {
            op: number
            for number, op in enumerate(
                each for each in walk(body) if each.name in ("scf.for", "scf.while")
            )
        }
        _drive(self._region(body))

    def _region(self, region: Region) -> _Walk:
        depth = len(self._guards)
        for op in region.ops:
            if op.name in ACCESS_OPS:
                self._visit(op)
            match op.name:
                case "scf.for":
                    yield self._for(op)
                case "scf.while":
                    yield self._while(op)
                case "scf.if":
                    yield self._if(op)
                case name if name in FOLDS:
                    fold(op, self.known)
                case _:
                    results(op, self.known)
            if op.regions:
                self._after_returns(op)
        del self._guards[depth:]
        return tuple(self.known.get(each) for each in region.terminator.operands)

    def _visit(self, op: Op) -> None:
        pointer, mask = self._aimed(op)
        described = self.known.get(op.operands[0])
        guard = both((ALWAYS, *self._guards))
        facts = (*self._facts, *(each.expression for each in guard.comparisons))
        if isinstance(pointer, Pointer):
            taking_part = both((guard, mask or ALWAYS))
            holding = Known(
                facts=(*facts, *(each.expression for each in taking_part.comparisons)),
                leftovers=taking_part.leftovers,
            )
            pointer = resolved(pointer, holding, self.known)
        self.visits[op] = Visit(
            op=op,
            pointer=pointer,
            mask=mask,
            padding=described.padding if isinstance(described, Described) else None,
            guard=guard,
            facts=facts,
            loops=tuple(self._inside),
        )

    def _aimed(self, op: Op) -> tuple[State, Condition | None]:
        """Where an access leads, and its mask if it has one."""
        if op.name in DESCRIPTOR_OPS:
            return located(op, self.known)
        pointer = self.known.get(op.operands[0])
        if pointer is None:
            pointer = UnknownPointer(reason="is not known", op=op.name, location=op.location)
        place = ACCESS_OPS[op.name]
        masked = place is not None and len(op.operands) > place
        return pointer, self.known.condition(op.operands[place]) if masked and place else None

    def _after_returns(self, op: Op) -> None:
        """What comes after an op that may leave the kernel is guarded by its not having done so."""
        leaving = [any(each.name == "tt.return" for each in walk(region)) for region in op.regions]
        if not any(leaving):
            return
        direct = [region.terminator.name == "tt.return" for region in op.regions]
        if op.name == "scf.if" and sum(leaving) == 1 and leaving == direct:
            self._guards.append(self._branch(op, not leaving[0]))
            return
        self._guards.append(self._not_returned(op))

    def _not_returned(self, op: Op) -> Condition:
        """What holds where `op`, or an earlier iteration of it, has not left the kernel."""
        value = self._returned.setdefault(op, Value(type=I1, name="returned"))
        reason = "is whether the kernel has returned before"
        symbol = self.known.symbol(value, reason, op=op.name, location=op.location)
        return Condition(leftovers=(Leftover(symbol=symbol, expected=False),))

    def _branch(self, op: Op, first: bool) -> Condition:
        """What holds where `scf.if` takes its first region, or does not."""
        condition = self.known.condition(op.operands[0])
        if first:
            return condition
        opposite = negated(condition)
        if opposite is not None:
            return opposite
        symbol = self.known.symbol(
            op.operands[0], "is no single comparison", op=op.name, location=op.location
        )
        return Condition(leftovers=(Leftover(symbol=symbol, expected=False),))

    def _if(self, op: Op) -> _Walk:
        ends: list[tuple[State | None, ...]] = []
        for index, region in enumerate(op.regions):
            self._guards.append(self._branch(op, index == 0))
            found = yield self._region(region)
            if not self._guards.pop().never and region.terminator.name == "scf.yield":
                ends.append(found)
        for index, result in enumerate(op.results):
            choice = Choice(
                value=result, reason="differs between the branches of a condition", op=op
            )
            state = one_of(choice, [each[index] for each in ends], self.known)
            if state is not None:
                self.known.put(result, state)
        return ()

    def _while(self, op: Op) -> _Walk:
        before, after = op.regions
        self._inside.append(self._numbers[op])
        self._guards.append(self._still_running(op))
        initial = [self.known.get(each) for each in op.operands]
        guesses = unchanging(initial)
        if len(self._inside) > DEEPEST_LOOP:
            guesses = [Unfollowed() for _ in guesses]
        while True:
            entered = self._enter(op, before.arguments, guesses, initial, constant(0))
            tested = yield self._region(before)
            ended = before.terminator.name == "scf.condition"
            handed = tested[1:] if ended else tuple(None for _ in after.arguments)
            self._hand_on(op, handed, after.arguments)
            yielded = yield self._region(after)
            if after.terminator.name != "scf.yield":
                yielded = tuple(entered)
            tried, guesses = (
                guesses,
                [checked(*each) for each in zip(guesses, entered, yielded, strict=True)],
            )
            if tried == guesses:
                break
        self._guards.pop()
        self._inside.pop()
        self._hand_on(op, handed, op.results)
        return ()

    def _hand_on(self, op: Op, states: tuple[State | None, ...], values: tuple[Value, ...]) -> None:
        """What the first region of a loop knows of values, seen from the second or from after.

        What the first region alone has a symbol for is a value of its own there.
        """
        own = values_in(op)
        for state, value in zip(states, values, strict=True):
            choice = Choice(value=value, reason="is carried by a loop", op=op)
            kept = state if is_free_of(state, own) else renamed(choice, state, self.known)
            if kept is not None:
                self.known.put(value, kept)

    def _still_running(self, op: Op) -> Condition:
        """What holds in each iteration of a loop that may leave the kernel."""
        leaves = any(each.name == "tt.return" for region in op.regions for each in walk(region))
        return self._not_returned(op) if leaves else ALWAYS

    def _for(self, op: Op) -> _Walk:
        (region,) = op.regions
        number = self._numbers[op]
        found = loop_of(op, number, self.known, self.most.get(number))
        initial = [self.known.get(each) for each in op.operands[3:]]
        guesses = first_guesses(op, self.known)
        self._inside.append(number)
        facts, guards = len(self._facts), len(self._guards)
        self._guards.append(self._still_running(op))
        count: Affine | None = None
        if found is None:
            self._hand_on(op, (None,), region.arguments[:1])
        else:
            loop, assumptions = found
            self.loops[number] = loop
            count = of(loop.iteration)
            self.known.put(
                region.arguments[0],
                Integer(expression=loop.counter, assumptions=assumptions),
            )
            self._facts.append((loop.upper - loop.counter).plus(-1))
            self._guards.append(Condition(assumptions=assumptions))
            if loop.trips is not None and loop.trips.interval.high == 0:
                self._guards.append(never())
        if len(self._inside) > DEEPEST_LOOP:
            guesses = [Unfollowed() for _ in guesses]
        strengthen = True
        while True:
            entered = self._enter(op, region.arguments[1:], guesses, initial, count)
            yielded = yield self._region(region)
            if region.terminator.name != "scf.yield":
                yielded = tuple(entered)
            better = strengthened if strengthen and count is not None else checked
            strengthen = False
            tried, guesses = (
                guesses,
                [better(*each) for each in zip(guesses, entered, yielded, strict=True)],
            )
            if tried == guesses:
                break
        self._inside.pop()
        del self._facts[facts:]
        del self._guards[guards:]
        trips = found[0].trips if found else None
        self._leave(op, guesses, initial, trips)
        return ()

    def _enter(
        self,
        op: Op,
        arguments: tuple[Value, ...],
        guesses: list[Guess],
        initial: list[State | None],
        count: Affine | None,
    ) -> list[State | None]:
        """Takes down what the guesses say of the carried values in the body."""
        entered: list[State | None] = []
        for index, (guess, value) in enumerate(zip(guesses, arguments, strict=True)):
            state = assumed(guess, value, initial[index], count, self.known, op)
            if state is not None:
                self.known.put(value, state)
            entered.append(state)
        return entered

    def _leave(
        self,
        op: Op,
        guesses: list[Guess],
        initial: list[State | None],
        trips: Affine | None,
    ) -> None:
        for guess, result, start in zip(guesses, op.results, initial, strict=True):
            count = trips
            if isinstance(guess, Steady) and not guess.delta:
                count = constant(0)
            state = assumed(guess, result, start, count, self.known, op)
            if state is not None:
                self.known.put(result, state)


def _drive(task: _Walk) -> None:
    stack = [task]
    sent: tuple[State | None, ...] | None = None
    while stack:
        try:
            child = stack[-1].send(sent)  # type: ignore[arg-type]
        except StopIteration as stop:
            stack.pop()
            sent = stop.value
        else:
            stack.append(child)
            sent = None

"""Choices that a mask decides: `where(valid, index, 0)` under the mask `valid` is `index`."""

from collections.abc import Sequence
from dataclasses import dataclass

from translators.access.division import substitute
from translators.access.expression import Affine, Leaf, Symbol, constant, lane, leaves, of
from translators.access.knowledge import Knowledge
from translators.access.lanes import moved
from translators.access.ranges import holds_under
from translators.access.states import Condition, Integer, Leftover, Pointer, merged, negated
from translators.graph.types import shape_of

# How deep choices of choices are followed.
_ROUNDS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What holds in every lane that takes part in an access.

    Attributes:
      facts: integers that are at least zero.
      leftovers: conditions that are no comparisons.
    """

    facts: Sequence[Affine]
    leftovers: Sequence[Leftover]

    def implies(self, condition: Condition) -> bool:
        """Whether a condition holds in all of these lanes."""
        return (
            not condition.never
            and not condition.assumptions
            and all(each in self.leftovers for each in condition.leftovers)
            and all(holds_under(each.expression, self.facts) for each in condition.comparisons)
        )


def resolved(pointer: Pointer, holding: Known, known: Knowledge) -> Pointer:
    """The pointer with each choice replaced that comes out alike in all lanes that take part.

    In other lanes the offset is another one than the kernel computes.
    """
    for _ in range(_ROUNDS):
        found: dict[Symbol, Integer] = {}
        for leaf in leaves(pointer.offset):
            if isinstance(leaf, Symbol) and leaf not in found:
                state = _decided(leaf, holding, known)
                if state is not None:
                    found[leaf] = state
        if not found:
            break

        def put(leaf: Leaf, found: dict[Symbol, Integer] = found) -> Affine:
            if isinstance(leaf, Symbol) and leaf in found:
                return found[leaf].expression
            return of(leaf)

        offset = substitute(pointer.offset, put)
        if offset is None:
            break
        resting = (each.assumptions for each in found.values())
        pointer = Pointer(
            argument=pointer.argument,
            offset=offset,
            assumptions=merged(pointer.assumptions, *resting),
        )
    return pointer


def _decided(symbol: Symbol, holding: Known, known: Knowledge) -> Integer | None:
    """What a symbol is in the lanes that take part, if it is a choice that they decide."""
    selection = known.selections.get(symbol.value)
    if selection is None:
        return None
    condition = _seen(selection.condition, symbol)
    if not isinstance(condition, Condition):
        return None
    chosen = None
    if holding.implies(condition):
        chosen = _seen(selection.held, symbol)
    else:
        opposite = negated(condition)
        if opposite is not None and holding.implies(opposite):
            chosen = _seen(selection.otherwise, symbol)
    return chosen if isinstance(chosen, Integer) else None


def _seen(state: Condition | Integer, symbol: Symbol) -> object:
    """What is known of a value of the symbol's shape, in the lanes in which the symbol is read."""
    positions = {
        axis: constant(0) if there is None else lane(there, extent)
        for axis, (extent, there) in enumerate(
            zip(shape_of(symbol.value.type), symbol.lanes, strict=True)
        )
    }
    return moved(state, positions)

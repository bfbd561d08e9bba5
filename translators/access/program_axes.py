"""Coordinates of the programs in place of their ids, and expressions in terms of them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from translators.access.division import again
from translators.access.enumeration import Array, Enumeration, slopes
from translators.access.expression import (
    Affine,
    Derived,
    Digit,
    Interval,
    ProgramId,
    Variable,
    constant,
    derived_in,
    of,
    total,
)
from translators.access.states import (
    Assumption,
    Condition,
    Described,
    Integer,
    Pointer,
    State,
    at_least_zero,
    both,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """Axes of the grid that are laid out anew together, apart from the others.

    Attributes:
      ids: the program ids along these axes, none of extent 1.
      digits: the new coordinates.
      programs: the programs in the order of the digits, the last digit moving fastest; `None`
        where there are too many to enumerate, and each digit is a program id.
    """

    ids: tuple[ProgramId, ...]
    digits: tuple[Digit, ...]
    programs: Enumeration | None

    def values(self, program_id: ProgramId) -> Array:
        """A program id in each program, of the shape of the digits' box."""
        shape = tuple(each.extent for each in self.digits)
        if self.programs is not None:
            return self.programs.leaves[program_id].reshape(shape)
        along = [1] * len(shape)
        along[self.ids.index(program_id)] = program_id.extent
        return np.broadcast_to(np.arange(program_id.extent).reshape(along), shape)

    def sum_of_digits(self, expression: Affine) -> Affine | None:
        """An expression of the block's programs as a sum of digits; `None` if it is none."""
        if self.programs is None:
            digits = dict(zip(self.ids, self.digits, strict=True))
            if any(isinstance(each, Derived) for each, _ in expression.terms):
                return None
            parts = (
                (digits[each] if isinstance(each, ProgramId) else each, factor)
                for each, factor in expression.terms
            )
            return total(parts, expression.offset)
        values = self.programs.values(expression)
        if values is None:
            return None
        found = slopes(values, tuple(each.extent for each in self.digits))
        if found is None:
            return None
        return total(zip(self.digits, found[1], strict=True), found[0])


class ProgramAxes:
    """The grid laid out anew: a bijection from its programs to a box.

    A program id that is left in a rewritten expression is no sum of the axes; what it is in each
    program, `table` says.

    Attributes:
      blocks: what is laid out apart.
      axes: the coordinates, each with its name and its extent, which is at least 2.
    """

    def __init__(self, blocks: Iterable[Block]) -> None:
        self.blocks = tuple(blocks)
        self.axes: tuple[Digit, ...] = tuple(each for block in self.blocks for each in block.digits)
        self._block_of: dict[Variable, Block | None] = {}
        for block in self.blocks:
            self._block_of.update(dict.fromkeys(block.ids, block))
            self._block_of.update(dict.fromkeys(block.digits, block))
        self._new: dict[Derived, Affine] = {}

    @property
    def extents(self) -> tuple[int, ...]:
        """The extent of each axis; their product is the number of programs."""
        return tuple(each.extent for each in self.axes)

    @property
    def plain(self) -> bool:
        """Whether the axes are those of the grid that have several programs, in order."""
        ids = [each for block in self.blocks for each in block.ids]
        pairs = zip(ids, self.axes, strict=False)
        return len(ids) == len(self.axes) and all(self.rewrite(of(a)) == of(b) for a, b in pairs)

    @property
    def table(self) -> Array:
        """The ids of each program: 32-bit integers of shape `(*extents, 3)`."""
        found = np.zeros((*self.extents, 3), np.int32)
        before = 0
        for block in self.blocks:
            after = len(self.axes) - before - len(block.digits)
            for each in block.ids:
                values = block.values(each)
                shape = (*(1,) * before, *values.shape, *(1,) * after)
                found[..., each.axis] = values.reshape(shape)
            before += len(block.digits)
        return found

    def rewrite(self, expression: Affine) -> Affine:
        """The same integer in every program, as far as that can be in terms of the axes.

        What depends on the program alone becomes a sum of axes where it is one. Otherwise the
        operands of what it is derived from are rewritten.
        """
        own: dict[Derived, Affine] = {}
        for derived in derived_in(expression):
            block = self._block(derived)
            if block is None:
                # Symbols inside may have other intervals the next time, and fold otherwise.
                own[derived] = self._derived(derived, own)
            elif derived not in self._new:
                self._new[derived] = self._derived(derived, own)
        return self._sum(expression, own)

    def _sum(self, expression: Affine, own: Mapping[Derived, Affine]) -> Affine:
        parts: dict[Block | None, list[tuple[Variable, int]]] = {}
        for variable, factor in expression.terms:
            parts.setdefault(self._block(variable), []).append((variable, factor))
        found = constant(expression.offset)
        for block, terms in parts.items():
            whole = None if block is None else block.sum_of_digits(total(terms))
            if whole is None:
                for variable, factor in terms:
                    found = found + self._alone(variable, block, own).times(factor)
            else:
                found = found + whole
        return found

    def _block(self, variable: Variable) -> Block | None:
        """Where a variable that depends on the programs of one block alone belongs."""
        if variable not in self._block_of:
            found: set[Block | None] = {None}
            if isinstance(variable, Derived):
                inside = (*variable.left.terms, *variable.right.terms)
                found = {self._block(each) for each, _ in inside}
            self._block_of[variable] = found.pop() if len(found) == 1 else None
        return self._block_of[variable]

    def _alone(
        self, variable: Variable, block: Block | None, own: Mapping[Derived, Affine]
    ) -> Affine:
        if isinstance(variable, Derived):
            return own[variable] if block is None else self._new[variable]
        found = None if block is None else block.sum_of_digits(of(variable))
        return of(variable) if found is None else found

    def _derived(self, derived: Derived, own: Mapping[Derived, Affine]) -> Affine:
        block = self._block(derived)
        if block is not None:
            whole = block.sum_of_digits(of(derived))
            if whole is not None:
                return whole
        left, right = self._sum(derived.left, own), self._sum(derived.right, own)
        found = again(derived, left, right)
        if found is None:
            return of(derived)
        return _narrowed(found, block)


def _narrowed(expression: Affine, block: Block | None) -> Affine:
    """A derived variable with the interval that it has over the programs."""
    match expression.terms:
        case ((Derived() as variable, factor),) if block is not None and block.programs is not None:
            values = block.programs.values(of(variable))
            if values is None:
                return expression
            interval = Interval(int(values.min()), int(values.max()))
            narrow = replace(variable, interval=interval)
            return of(narrow).times(factor).plus(expression.offset)
    return expression


def rewritten(state: State, axes: ProgramAxes) -> State:
    """What is known of a value, in terms of the axes."""

    def resting_on(assumptions: tuple[Assumption, ...]) -> tuple[Assumption, ...]:
        return tuple(
            replace(each, expression=axes.rewrite(each.expression)) for each in assumptions
        )

    match state:
        case Integer(expression=expression, assumptions=assumptions):
            return Integer(expression=axes.rewrite(expression), assumptions=resting_on(assumptions))
        case Pointer(argument=argument, offset=offset, assumptions=assumptions):
            return Pointer(
                argument=argument,
                offset=axes.rewrite(offset),
                assumptions=resting_on(assumptions),
            )
        case Described(sizes=sizes, strides=strides):
            return replace(
                state,
                offset=axes.rewrite(state.offset),
                sizes=tuple(map(axes.rewrite, sizes)),
                strides=tuple(map(axes.rewrite, strides)),
                assumptions=resting_on(state.assumptions),
            )
        case Condition(comparisons=comparisons, leftovers=leftovers, never=never):
            kept = Condition(
                leftovers=leftovers, never=never, assumptions=resting_on(state.assumptions)
            )
            parts = (
                at_least_zero(axes.rewrite(each.expression), each.op, each.location)
                for each in comparisons
            )
            return both((kept, *parts))
        case _:
            return state

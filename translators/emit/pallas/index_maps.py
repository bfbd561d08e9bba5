"""Index maps: which block of each array a step sees, over its place in the grid."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from translators.access.expression import (
    Affine,
    Derivation,
    Derived,
    Symbol,
    Variable,
    depends_on_data,
    derived_in,
    leaves,
    of,
)
from translators.emit.pallas.ahead import Ahead
from translators.emit.pallas.parts import Parts
from translators.emit.pallas.plan import Plan
from translators.emit.pallas.windows import Cut, Window
from translators.graph.graph import Value


@dataclass(slots=True, kw_only=True)
class IndexMaps:
    """The index maps of a kernel.

    Attributes:
      plan: the grid.
      places: what its variables are called there.
      windows: what is read; those that say which blocks to read among them.
      steering: of each number in memory that does, the window and the element of it.
      ahead: how the last iteration of a loop is computed before the kernel runs, where data say it.
      last: what holds that; empty where there is none.
      order: the variables of the grid, the outermost first, once that is known.
    """

    plan: Plan
    places: Mapping[Variable, str]
    windows: Mapping[object, Window]
    steering: Mapping[Value, tuple[Window, Affine]]
    ahead: Ahead | None = None
    last: str = ""
    order: Sequence[Variable] = ()

    def leading(self, window: Window) -> list[tuple[Window, Affine]]:
        """The numbers in memory that say which block a window is."""
        return [
            self.steering[leaf.value]
            for index in window.index
            for leaf in leaves(index)
            if isinstance(leaf, Symbol)
        ]

    def led(self, window: Window) -> list[str]:
        """The references to numbers that say which block a window is."""
        led = [each.reference for each, _ in self.leading(window)]
        parts = self.plan.parts
        if self.ahead is not None and parts is not None and parts.variable in self.moved(window):
            led.append(self.last)
        return led

    def prefetched(self) -> list[str]:
        """The references to numbers that say which blocks to read, in their order."""
        windows = self.windows.values()
        led = {each for window in windows for each in self.led(window)}
        return [each for each in (*(each.reference for each in windows), self.last) if each in led]

    def moved(self, window: Window) -> set[Variable]:
        """The variables of the grid that a window moves with."""
        found: set[Variable] = set()
        for index in (*window.index, *(each for _, each in self.leading(window))):
            found.update(leaf for leaf in leaves(index) if leaf in self.plan.grid)
        parts = self.plan.parts
        if parts is not None and parts.varies and parts.variable in found:
            known = leaves(parts.last) if self.ahead is None else self.ahead.places
            found.update(each for each in known if each in self.plan.grid)
        return found

    def specification(self, window: Window) -> str:
        """The `BlockSpec` of a window."""
        if window.scalars:
            return "pl.BlockSpec(memory_space=pltpu.SMEM)"
        moved = self.moved(window)
        shown = [
            self.places[each] if each in moved else f"_{self.places[each]}" for each in self.order
        ]
        led = self.led(window)
        shown = shown or ["_"]
        shown += [each if each in led else f"_{each}" for each in self.prefetched()]
        block = ", ".join(
            "None" if not each.seen else str(each.block) for each in window.dimensions
        )
        index = ", ".join(self._block_index(each) for each in window.dimensions)
        comma = "," if len(window.dimensions) == 1 else ""
        return f"pl.BlockSpec(({block}{comma}), lambda {', '.join(shown)}: ({index}{comma}))"

    def _block_index(self, cut: Cut) -> str:
        """Which block of a dimension a step sees; the last one in the place of those behind."""
        last = -(-cut.size // cut.block) - 1
        text = self._expression(cut.index)
        if depends_on_data(cut.index):
            # What data say where no lane takes part may be anything.
            return f"jnp.clip({text}, 0, {last})"
        return text if cut.index.interval.high <= last else f"jnp.minimum({text}, {last})"

    def _expression(self, expression: Affine) -> str:
        """The expression over the variables of the grid as Python."""
        parts: dict[Variable, str] = dict(self.places)
        for leaf in leaves(expression):
            if self.plan.parts is not None and leaf == self.plan.parts.variable:
                parts[leaf] = self._needed(self.plan.parts)
            if isinstance(leaf, Symbol):
                window, index = self.steering[leaf.value]
                parts[leaf] = f"{window.reference}[{self._expression(index)}]"
        for derived in derived_in(expression):
            parts[derived] = _derived(
                derived, _sum(derived.left, parts), _sum(derived.right, parts)
            )
        return _sum(expression, parts)

    def _needed(self, parts: Parts) -> str:
        """Which iteration's blocks a step of a loop has: behind the last one those of the last."""
        place = self.places[parts.variable]
        if not parts.varies:
            return place
        if self.ahead is None:
            last = self._expression(parts.last)
        else:
            index = Affine()
            for each in self.ahead.places:
                index = index.times(self.plan.grid[each]) + of(each)
            last = f"{self.last}[{self._expression(index)}]"
        return f"jnp.minimum({place}, {last})"


def _sum(expression: Affine, parts: Mapping[Variable, str]) -> str:
    text = ""
    for variable, factor in expression.terms:
        word = parts[variable] if abs(factor) == 1 else f"{parts[variable]} * {abs(factor)}"
        sign = "-" if factor < 0 else "+"
        text = f"{text} {sign} {word}" if text else (f"-{word}" if factor < 0 else word)
    if expression.offset and text:
        return f"{text} {'+' if expression.offset > 0 else '-'} {abs(expression.offset)}"
    return text or str(expression.offset)


def _derived(derived: Derived, left: str, right: str) -> str:
    match derived.derivation:
        case Derivation.FLOOR_DIVIDE:
            return f"(({left}) // ({right}))"
        case Derivation.REMAINDER:
            return f"(({left}) % ({right}))"
        case Derivation.MINIMUM:
            return f"jnp.minimum({left}, {right})"
        case Derivation.MAXIMUM:
            return f"jnp.maximum({left}, {right})"

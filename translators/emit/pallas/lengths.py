"""How long the blocks of a step are: as somebody asks for, or else as suits; and what they are."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from translators.access.expression import Digit
from translators.emit.merging import Blocks, Chooser
from translators.graph.errors import GraphError
from translators.graph.location import SourceLocation


class UnknownDimensionError(GraphError):
    """A length is asked for a dimension that does not go in blocks.

    Args:
      name: what it was to be called.
      known: the dimensions that do.
      location: the kernel.
    """

    def __init__(self, name: str, known: Collection[str], location: SourceLocation | None) -> None:
        listed = ", ".join(f"`{each}`" for each in known) or "no dimension"
        super().__init__(
            f"{listed} can go in blocks of a length that is asked for, not `{name}`", location
        )
        self.name = name


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockLength:
    """A dimension that a kernel goes along in blocks.

    Attributes:
      name: what it is called.
      length: how long a block is; `whole` where there is one block alone.
      whole: how long the dimension is.
      even: whether blocks divide the dimension, so that none is shorter.
    """

    name: str
    length: int
    whole: int
    even: bool = False


@dataclass(slots=True, kw_only=True, eq=False)
class Lengths:
    """The lengths of one emission.

    Attributes:
      asked: those that somebody asks for, by the name of the dimension.
      location: the kernel.
      merged: the dimensions along which programs are merged.
      several: those of which a step has several programs.
    """

    asked: Mapping[str, int]
    location: SourceLocation | None
    merged: dict[str, BlockLength] = field(default_factory=dict)
    several: dict[str, BlockLength] = field(default_factory=dict)

    @property
    def found(self) -> tuple[BlockLength, ...]:
        """All dimensions that go in blocks.

        Raises:
          UnknownDimensionError: something is asked for a dimension that does not.
        """
        found = {**self.merged, **self.several}
        for name in self.asked:
            if name not in found:
                raise UnknownDimensionError(name, found, self.location)
        return tuple(found.values())

    @property
    def settled(self) -> bool:
        """Whether all lengths are as asked for."""
        return self.merged.keys() | self.several.keys() <= self.asked.keys()

    def chooser(self, choose: Chooser) -> Chooser:
        """Chooses what is asked for, and else what `choose` does."""

        def chosen(blocks: Sequence[Blocks]) -> Mapping[Digit, int]:
            found = dict(choose(blocks))
            self.merged.clear()
            for each in blocks:
                length = min(each.whole, found.get(each.digit, each.whole))
                name = _unlike(each.digit.name, self.merged)
                if name in self.asked:
                    length = min(each.whole, self.asked[name])
                    self._check(name, length, each)
                found[each.digit] = length
                self.merged[name] = BlockLength(name=name, length=length, whole=each.whole)
            return found

        return chosen

    def programs(self, name: str, chosen: int, extent: int) -> int:
        """How many programs of a dimension a step has."""
        name = _unlike(name, {**self.merged, **self.several})
        count = min(extent, self.asked.get(name, chosen))
        self.several[name] = BlockLength(name=name, length=count, whole=extent)
        return count

    def iterations(self, name: str, chosen: int, trips: int) -> None:
        """Takes down how many iterations of a loop a step does."""
        self.several[name] = BlockLength(name=name, length=chosen, whole=trips, even=True)

    def _check(self, name: str, length: int, blocks: Blocks) -> None:
        """Refuses a length that the kernel cannot have.

        Raises:
          GraphError: it divides blocks of the kernel, or what is behind the last block is touched.
        """
        if length == blocks.whole:
            return
        if length % blocks.block:
            raise GraphError(
                f"blocks along `{name}` are multiples of {blocks.block}, not {length}",
                self.location,
            )
        if not blocks.bounded and blocks.digit.extent % (length // blocks.block):
            raise GraphError(
                f"blocks along `{name}` have to divide {blocks.whole}, as {length} does not",
                self.location,
            )


def _unlike(name: str, taken: Mapping[str, BlockLength]) -> str:
    """The name, with a number behind it where it is taken."""
    found, count = name, 1
    while found in taken:
        count += 1
        found = f"{name}_{count}"
    return found

"""Checks of the regions of structured ops, as clauses that say what is wrong."""

from collections.abc import Iterator, Sequence

from translators.graph.graph import Op, Region
from translators.graph.types import Type, element_of


def _spell(types: Sequence[Type | None]) -> str:
    return "(" + ", ".join(f"`{each}`" for each in types) + ")"


def entered_with(region: Region, wanted: Sequence[Type | None], which: str) -> Iterator[str]:
    """Whether the region's arguments have the types it is entered with."""
    found = [each.type for each in region.arguments]
    if found != list(wanted):
        yield f"enters its {which} with {_spell(wanted)}, which takes {_spell(found)}"


def ends_with(region: Region, wanted: Sequence[Type | None], which: str) -> Iterator[str]:
    """Whether the region ends with values of those types; one that leaves the function may."""
    end = region.terminator
    if end.name == "tt.return":
        return
    found = [each.type for each in end.operands]
    if found != list(wanted):
        yield f"takes {_spell(wanted)} from its {which}, which gives {_spell(found)}"


def combines(op: Op) -> Iterator[str]:
    """The region takes two elements of each operand and gives one."""
    elements = [element_of(each.type) for each in op.operands]
    yield from entered_with(op.regions[0], elements * 2, "region")
    yield from ends_with(op.regions[0], elements, "region")


def maps(op: Op) -> Iterator[str]:
    """The region takes an element of each operand and gives one of each result."""
    elements = [element_of(each.type) for each in op.operands]
    yield from entered_with(op.regions[0], elements, "region")
    given = [element_of(each.type) for each in op.results]
    yield from ends_with(op.regions[0], given, "region")


def loops(op: Op) -> Iterator[str]:
    """The body takes the counter and the carried values and gives the next ones."""
    carried = [each.type for each in op.operands[3:]]
    yield from entered_with(op.regions[0], [op.operands[0].type, *carried], "body")
    yield from ends_with(op.regions[0], carried, "body")


def branches(op: Op) -> Iterator[str]:
    """Each region takes nothing and gives the results; without results one may lack."""
    given = [each.type for each in op.results]
    if given and len(op.regions) == 1:
        yield "gives results in one case only"
    for region, which in zip(op.regions, ("first region", "second region"), strict=False):
        yield from entered_with(region, [], which)
        yield from ends_with(region, given, which)


def repeats(op: Op) -> Iterator[str]:
    """The first region gives a condition and the results, the second the next values."""
    before, after = op.regions
    carried = [each.type for each in op.operands]
    given = [each.type for each in op.results]
    yield from entered_with(before, carried, "first region")
    if before.terminator.name == "scf.condition":
        found = [each.type for each in before.terminator.operands[1:]]
        if found != given:
            yield f"gives {_spell(given)}, but its condition passes on {_spell(found)}"
    yield from entered_with(after, given, "second region")
    yield from ends_with(after, carried, "second region")

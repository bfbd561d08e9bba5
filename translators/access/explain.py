"""The access analysis as text, access by access."""

from collections.abc import Iterator

from translators.access.analysis import Access, Analysis
from translators.access.delinearize import Dimension, Flat
from translators.access.masks import Mask
from translators.access.states import Pointer


def explain(analysis: Analysis) -> str:
    """A paragraph for each access: where it goes, under which mask, of which class and why."""
    lines: list[str] = []
    for loop in analysis.loops.values():
        trips = "an unknown number of" if loop.trips is None else str(loop.trips)
        lines.append(
            f"loop {loop.number} at {loop.location or 'an unknown line'}: "
            f"counter {loop.counter}, {trips} iterations"
        )
    for access in analysis.accesses:
        lines += _paragraph(access, analysis)
    return "".join(f"{line}\n" for line in lines)


def _paragraph(access: Access, analysis: Analysis) -> Iterator[str]:
    location = access.op.location
    yield f"{access.number}: {access.op.name} at {location or 'an unknown line'}"
    if location is not None and location.text:
        yield f"    | {location.text}"
    yield f"    class: {access.kind.label}"
    for reason in access.reasons:
        yield f"    because {reason}"
    if isinstance(access.pointer, Pointer):
        yield f"    array: {_array(access, access.pointer, analysis)}"
        yield f"    offset: {access.pointer.offset}"
    if isinstance(access.position, Flat):
        yield f"    not taken apart: {access.position.reason}"
    else:
        for number, dimension in enumerate(access.position.dimensions):
            yield f"    {_dimension(number, dimension, access)}"
    if access.mask is not None:
        yield f"    mask: {_mask(access.mask)}"
    if not access.guard.always:
        yield f"    only where: {_mask(access.guard)}"
    for assumption in access.assumptions:
        yield f"    provided {assumption}"


def _array(access: Access, pointer: Pointer, analysis: Analysis) -> str:
    argument = analysis.kernel.arguments[pointer.argument]
    if access.buffer is None:
        return f"`{argument.name or pointer.argument}`, shape unknown"
    return f"`{access.buffer.name}`, shape {access.buffer.shape}, strides {access.buffer.strides}"


def _dimension(number: int, dimension: Dimension, access: Access) -> str:
    tile = access.tiles[number]
    axes = ", ".join(map(str, dimension.axes))
    name = f"axis {axes}" if len(dimension.axes) == 1 else f"axes {axes} as one"
    text = f"index {number} ({name}, size {dimension.size}): {dimension.index}"
    if tile.length > 1:
        extents = (part.extent for part in tile.parts)
        runs = [(tile.length, tile.step)] if tile.even else zip(extents, tile.steps, strict=True)
        text += f" = {tile.start}" + "".join(f" + {_counted(*each)}" for each in runs)
    return text if dimension.proved else f"{text}, not proved to be inside"


def _counted(length: int, step: int) -> str:
    return f"[0, {length})" if step == 1 else f"[0, {length}) by {step}"


def _mask(mask: Mask) -> str:
    if mask.never:
        return "never true"
    if mask.always:
        return "always true for these sizes"
    parts = [f"{each} (the array's edge)" if each.edge else str(each) for each in mask.bounds]
    parts += [str(each) for each in mask.predicates]
    parts += [f"{each}: {each.symbol.reason}" for each in mask.leftovers]
    return " and ".join(parts)

"""The access analysis of a kernel: every load, store and atomic, one after another."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from translators.access.classify import AccessClass, Reason, Tile, classify, tile_of
from translators.access.delinearize import Flat, Position, delinearize
from translators.access.descriptors import DESCRIPTOR_OPS, block_shape
from translators.access.expression import Affine, Origin, constant
from translators.access.knowledge import Knowledge
from translators.access.launch import Buffer, Specialization
from translators.access.loops import Loop
from translators.access.masks import Mask, mask_of
from translators.access.program_axes import ProgramAxes
from translators.access.states import (
    ALWAYS,
    Assumptions,
    Condition,
    Described,
    Integer,
    Pointer,
    State,
    UnknownPointer,
    merged,
    never,
)
from translators.access.walk import ACCESS_OPS, Visit, Walker
from translators.graph.errors import GraphError
from translators.graph.graph import Function, Module, Op, Value, walk
from translators.graph.types import DescriptorType, IntType, PointerType, element_of, shape_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """One load, store or atomic.

    Attributes:
      number: which one, in the order of the kernel's text.
      op: the op.
      shape: that of the pointers, empty for a scalar; through a descriptor that of its block,
        whose dimensions of 1 the tensor read or written may lack, or of the gathered rows.
      pointer: the buffer and the offset in it, or why that is not known. In lanes that take no
        part the offset may be another one than the kernel computes.
      buffer: the array, where the launch says which.
      position: the offset as indices, or why it was not taken apart.
      tiles: one for each dimension of the position.
      mask: which lanes take part; `None` if the op has no mask. Through a descriptor those take
        part that lie in the array that it describes.
      guard: which programs and iterations come to it.
      loops: the numbers of the loops around it, outermost first.
      kind: its class.
      reasons: why it is not a better one; empty for a block.
      assumptions: what all that rests on, besides what the launch proves.
      padding: `zero` or `nan`, what lanes read through a descriptor outside of the array; `None`
        where the access itself says, or is through a descriptor that is not known.
    """

    number: int
    op: Op
    shape: tuple[int, ...]
    pointer: Pointer | UnknownPointer
    buffer: Buffer | None
    position: Position | Flat
    tiles: tuple[Tile, ...]
    mask: Mask | None
    guard: Mask
    loops: tuple[int, ...]
    kind: AccessClass
    reasons: tuple[Reason, ...]
    assumptions: Assumptions
    padding: str | None = None

    @property
    def never(self) -> bool:
        """Whether no lane of any program takes part, as none may where the array is empty."""
        empty = self.buffer is not None and 0 in self.buffer.shape
        return empty or self.guard.never or (self.mask is not None and self.mask.never)


@dataclass(frozen=True, slots=True, kw_only=True)
class Analysis:
    """What the analysis found.

    Attributes:
      kernel: the kernel.
      launch: what it was specialised on.
      accesses: in the order of the kernel's text.
      loops: those whose counters were followed, by number.
      states: what is known of the kernel's values; those of other types are absent.
      axes: the coordinates of the programs that all of it is in terms of; `None` if it is in
        terms of program ids.
    """

    kernel: Function
    launch: Specialization
    accesses: tuple[Access, ...]
    loops: Mapping[int, Loop]
    states: Mapping[Value, State]
    axes: ProgramAxes | None = None


def analyze(
    module: Module,
    launch: Specialization,
    axes: ProgramAxes | None = None,
    most: Mapping[int, int] = MappingProxyType({}),
) -> Analysis:
    """Analyses every access of the module's kernel.

    Args:
      module: the kernel; calls must be inlined where what is called touches memory.
      launch: the grid, the arrays and the scalar arguments.
      axes: coordinates of the programs, from `program_axes` of an earlier analysis, to express
        everything in; program ids if not given.
      most: how many iterations loops have at most, by number, where more is known than they say.

    Raises:
      GraphError: the kernel calls a function that touches memory.
    """
    kernel = module.kernel
    _refuse_calls(module)
    walker = Walker(Knowledge(launch.grid, axes), most)
    for index, argument in enumerate(kernel.arguments):
        state = _argument(index, argument, launch, walker.known)
        if state is not None:
            walker.known.put(argument, state)
    walker.run(kernel.body)
    visits = (walker.visits[op] for op in walk(kernel.body) if op in walker.visits)
    return Analysis(
        kernel=kernel,
        launch=launch,
        accesses=tuple(_access(number, visit, launch) for number, visit in enumerate(visits)),
        loops=dict(sorted(walker.loops.items())),
        states=walker.known.states(),
        axes=axes,
    )


def _refuse_calls(module: Module) -> None:
    for op in walk(module.kernel.body):
        if op.name != "tt.call":
            continue
        pending, seen = [str(op.attributes["callee"])], set()
        while pending:
            name = pending.pop()
            if name in seen or name not in module.functions:
                continue
            seen.add(name)
            for inner in walk(module.functions[name].body):
                if inner.name in ACCESS_OPS:
                    raise GraphError(
                        f"`{op.name}` of `{op.attributes['callee']}` touches memory and must be "
                        "inlined before accesses are analysed",
                        op.location,
                    )
                if inner.name == "tt.call":
                    pending.append(str(inner.attributes["callee"]))


def _argument(
    index: int, argument: Value, launch: Specialization, known: Knowledge
) -> State | None:
    element = element_of(argument.type)
    if isinstance(element, PointerType):
        return Pointer(argument=index, offset=constant(0))
    if isinstance(argument.type, DescriptorType):
        return _descriptor(index, launch)
    if isinstance(element, IntType) and index in launch.scalars:
        value = launch.scalars[index]
        if element.width == 1:
            return ALWAYS if value else never()
        return Integer(expression=constant(element.wrap(value)))
    return known.bare(
        argument, "is an argument that the launch leaves open", origin=Origin.ARGUMENT
    )


def _descriptor(index: int, launch: Specialization) -> State:
    buffer = launch.buffers.get(index)
    if buffer is None:
        reason = "is a descriptor of an array that the launch does not give"
        return UnknownPointer(reason=reason, op="", location=None)
    return Described(
        argument=index,
        offset=constant(0),
        sizes=tuple(map(constant, buffer.shape)),
        strides=tuple(map(constant, buffer.strides)),
        padding=buffer.padding,
    )


def _access(number: int, visit: Visit, launch: Specialization) -> Access:
    op, pointer = visit.op, visit.pointer
    if not isinstance(pointer, Pointer):
        assert isinstance(pointer, UnknownPointer)
    described = op.name in DESCRIPTOR_OPS
    argument = pointer.argument if isinstance(pointer, Pointer) else None
    buffer = None if argument is None else launch.buffers.get(argument)
    condition = visit.mask or ALWAYS
    facts = (*visit.facts, *(each.expression for each in condition.comparisons))
    position, tiles, kind, reasons = _placed(op, pointer, buffer, facts)
    dimensions = position.dimensions if isinstance(position, Position) else ()
    own = position.assumptions if isinstance(position, Position) else ()
    by = pointer.assumptions if isinstance(pointer, Pointer) else ()
    return Access(
        number=number,
        op=op,
        shape=block_shape(op) if described else shape_of(op.operands[0].type),
        pointer=pointer,
        buffer=buffer,
        position=position,
        tiles=tiles,
        mask=None if visit.mask is None else mask_of(visit.mask, dimensions, visit.facts),
        guard=_guard(visit.guard),
        loops=visit.loops,
        kind=kind,
        reasons=reasons,
        assumptions=merged(by, own, condition.assumptions, visit.guard.assumptions),
        padding=visit.padding,
    )


def _guard(condition: Condition) -> Mask:
    return mask_of(condition, (), ())


def _placed(
    op: Op, pointer: Pointer | UnknownPointer, buffer: Buffer | None, facts: tuple[Affine, ...]
) -> tuple[Position | Flat, tuple[Tile, ...], AccessClass, tuple[Reason, ...]]:
    if isinstance(pointer, UnknownPointer):
        named = f"`{pointer.op}`: " if pointer.op else ""
        reason = Reason(
            text=f"{named}the pointer {pointer.reason}",
            op=pointer.op or op.name,
            location=pointer.location or op.location,
        )
        return Flat(reason=reason.text), (), AccessClass.IRREGULAR, (reason,)
    if buffer is None:
        position: Position | Flat = Flat(reason="the launch does not say the array's shape")
    else:
        position = delinearize(pointer.offset, buffer, facts, op)
    if isinstance(position, Flat):
        text = f"`{op.name}` at offset `{pointer.offset}`: {position.reason}"
        reason = Reason(text=text, op=op.name, location=op.location)
        return position, (), AccessClass.IRREGULAR, (reason,)
    tiles = tuple(tile_of(each, op) for each in position.dimensions)
    kind, reasons = classify(tiles, position.dimensions, op)
    return position, tiles, kind, reasons

"""A kernel as a function on JAX arrays."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from translators.access.analysis import Analysis
from translators.access.expression import Digit, ProgramId, Variable
from translators.emit import (
    accesses,
    atomics,
    branches,
    calls,
    casts,
    descriptors,
    elementwise,
    externs,
    integers,
    loops,
    pointers,
    products,
    reductions,
    shaping,
)
from translators.emit.axis_order import outermost_first
from translators.emit.buffers import Buffers
from translators.emit.cycles import Body, Counted, cycle
from translators.emit.driving import drive, run
from translators.emit.emission import Emission, Enter, Note, Rule, Steps
from translators.emit.facts import ArgumentFact, ArrayFact, ScalarFact
from translators.emit.pallas.lengths import BlockLength
from translators.emit.pointers import pointee_of
from translators.emit.preamble import HELPERS
from translators.emit.python_file import python_file
from translators.emit.terms import BatchAxis, Emitted, PointerTerm, Term, constant, dtype
from translators.emit.writer import Writer
from translators.graph.graph import Module
from translators.graph.types import I32, I64, PointerType, element_of

RULES: Mapping[str, Rule] = {
    **accesses.RULES,
    **atomics.RULES,
    **branches.RULES,
    **calls.RULES,
    **casts.RULES,
    **descriptors.RULES,
    **elementwise.RULES,
    **externs.RULES,
    **integers.RULES,
    **loops.RULES,
    **pointers.RULES,
    **products.RULES,
    **reductions.RULES,
    **shaping.RULES,
}

# An array of all iterations of a loop may be so many times as large as the largest argument.
_GROWTH = 4
_SMALL = 1 << 16


@dataclass(frozen=True, slots=True, kw_only=True)
class JaxFunction:
    """An emitted function.

    Attributes:
      name: its name in `source`.
      source: a whole Python file, which imports nothing but jax.
      parameters: the kernel's array parameters that it takes, in order.
      scalars: the kernel's float parameters that it takes by name; the launch's are defaults.
      results: the array parameters whose new contents it gives, in order.
      wide: whether it needs 64-bit types, which JAX has to be told to enable.
      notes: what its owner should know.
      sizes: those that it reads off its arguments, where it is not for the launch's alone.
      pallas: whether it is a kernel in Pallas; it then takes `interpret` too, as `pallas_call`.
      reblocked: whether it goes in blocks of another length than the kernel as it was launched, so
        that what is rounded or infinite meets in another order.
      blocks: the dimensions that such a kernel goes along in blocks.
    """

    name: str
    source: str
    parameters: tuple[str, ...]
    scalars: tuple[str, ...]
    results: tuple[str, ...]
    wide: bool
    notes: tuple[Note, ...]
    sizes: tuple[str, ...] = ()
    pallas: bool = False
    reblocked: bool = False
    blocks: tuple[BlockLength, ...] = ()


def emit_jax(
    module: Module,
    analysis: Analysis,
    arguments: Sequence[ArgumentFact],
    *,
    ordered: Note | None = None,
) -> JaxFunction:
    """Writes the kernel of a verified module as a function on JAX arrays.

    Args:
      module: the kernel, with the functions that it calls.
      analysis: its accesses, for the launch that the function is specialised on.
      arguments: one fact for each of the kernel's arguments.
      ordered: why programs have to run one after another; `None` if they need not.

    Raises:
      GraphError: part of the kernel has no faithful form in JAX.
    """
    return _Maker(module, analysis, arguments, ordered).made()


class _Maker:
    """One emission, from the facts to the text of the file."""

    def __init__(
        self,
        module: Module,
        analysis: Analysis,
        arguments: Sequence[ArgumentFact],
        ordered: Note | None,
    ) -> None:
        self._module = module
        self._ordered = ordered
        self._analysis = analysis
        self._facts = arguments
        self._writer = Writer()
        self._name = self._writer.fresh(module.kernel.name)
        self._scalars: dict[str, ScalarFact] = {}
        self._emission = self._begin()

    def _begin(self) -> Emission:
        buffers = Buffers(self._writer)
        sizes = [_SMALL]
        for index, fact in enumerate(self._facts):
            if not isinstance(fact, ArrayFact) or fact.alias != index:
                continue
            pointee = pointee_of(self._module.kernel.arguments[index].type)
            buffers.add(index, fact, pointee)
            sizes.append(_GROWTH * buffers.states[index].size)
        serial = self._ordered is not None
        emission = Emission(
            module=self._module,
            analysis=self._analysis,
            writer=self._writer,
            buffers=buffers,
            rules=RULES,
            programs={} if serial else _program_axes(self._analysis),
            largest=max(sizes),
        )
        emission.serial = serial
        if self._ordered is not None:
            emission.notes.append(self._ordered)
        return emission

    def made(self) -> JaxFunction:
        """The function."""
        e, kernel = self._emission, self._module.kernel
        self._writer.location = None
        for index, (argument, fact) in enumerate(zip(kernel.arguments, self._facts, strict=True)):
            self._enter(index, argument, fact)
        first = {key: state.name for key, state in e.buffers.states.items()}
        for state in e.buffers.states.values():
            converted = e.buffers.entered(state)
            if converted:
                state.name = self._writer.assign(converted, state.fact.name)
        if e.serial:
            drive(e, self._serially())
        else:
            run(e, kernel.body)
        self._writer.location = None
        written = [key for key, state in e.buffers.states.items() if state.written]
        returns = [e.buffers.left(e.buffers.states[key]) for key in written]
        whole = returns[0] if len(returns) == 1 else f"({', '.join(returns)})"
        body, free = self._writer.finished(whole, [self._name, *first.values(), *self._scalars])
        taken = [key for key in e.buffers.states if first[key] in free]
        return self._file(body, free, taken, written, first)

    def _enter(self, index: int, argument: object, fact: ArgumentFact) -> None:
        e = self._emission
        value = self._module.kernel.arguments[index]
        element = element_of(value.type)
        if isinstance(fact, ArrayFact):
            e.aliases[index] = fact.alias
            if not isinstance(element, PointerType):
                return  # a descriptor, of which the analysis of accesses knows what it says
            offset = constant(0, I32)
            e.put(value, PointerTerm(buffer=fact.alias, offset=offset, pointee=element.pointee))
        elif fact.free:
            assert element is not None
            name = self._writer.fresh(fact.name)
            self._scalars[name] = fact
            text = f"jnp.{fact.dtype}({name})"
            if fact.dtype.startswith("uint"):
                text = f"{text}.astype({dtype(element)})"
            e.put(value, Term(text=self._writer.assign(text, fact.name), element=element))
        else:
            assert element is not None
            number = int(fact.value)
            narrow = element == I64 and I32.smallest <= number <= I32.largest
            e.put(value, constant(number, I32 if narrow else element))

    def _serially(self) -> Steps:
        """All programs, one after another, in the order of Triton's interpreter."""
        e = self._emission
        grid = self._analysis.launch.grid

        def body(params: list[Emitted], counter: Term) -> Body:
            units = (grid[1] * grid[2], grid[2], 1)
            e.programs = {
                ProgramId(axis=axis, extent=extent): _id_of(e, counter, units[axis], extent)
                for axis, extent in enumerate(grid)
                if extent > 1
            }
            e.active = e.alive = None
            yield Enter(self._module.kernel.body)
            return []

        count = grid[0] * grid[1] * grid[2]
        header = Counted(first="0", last=str(count), name="program")
        yield from cycle(e, [], hints=[], body=body, header=header, returns=False)

    def _file(
        self,
        body: list[str],
        free: frozenset[str],
        taken: list[int],
        written: list[int],
        first: Mapping[int, str],
    ) -> JaxFunction:
        e = self._emission
        scalars = {name: fact for name, fact in self._scalars.items() if name in free}
        facts = [e.buffers.states[key].fact for key in taken]
        results = tuple(e.buffers.states[key].fact.name for key in written)
        source = python_file(
            name=self._name,
            kernel=self._module.kernel.name,
            arguments=self._facts,
            arrays=[(first[key], e.buffers.states[key].fact) for key in taken],
            scalars=scalars,
            results=results,
            body=[*_converted(body, [first[key] for key in taken if key in written]), *body],
            helpers={each: HELPERS[each] for each in self._writer.helpers},
        )
        wide = any(is_wide_text(line) for line in body)
        return JaxFunction(
            name=self._name,
            source=source,
            parameters=tuple(fact.name for fact in facts),
            scalars=tuple(scalars),
            results=results,
            wide=wide or any(fact.dtype.endswith("64") for fact in facts),
            notes=tuple(e.notes),
        )


def is_wide_text(line: str) -> bool:
    """Whether a line of emitted text speaks of 64-bit types."""
    return "jnp.int64" in line or "jnp.uint64" in line or "jnp.float64" in line


def _converted(body: list[str], names: list[str]) -> list[str]:
    """Statements for arrays that are changed at some places, which NumPy's cannot be."""
    if not any(".at[" in line for line in body):
        return []
    return [f"    {name} = jnp.asarray({name})" for name in names]


def _program_axes(analysis: Analysis) -> dict[Variable, BatchAxis | Term]:
    """A batch axis for each coordinate of the programs, the last innermost."""
    coordinates: Sequence[Digit | ProgramId]
    if analysis.axes is not None:
        coordinates = analysis.axes.axes
    else:
        coordinates = [
            ProgramId(axis=axis, extent=extent)
            for axis, extent in enumerate(analysis.launch.grid)
            if extent > 1
        ]
    ordered = outermost_first(analysis.accesses, coordinates)
    last = len(ordered) - 1
    places = {each: last - index for index, each in enumerate(ordered)}
    return {
        each: BatchAxis(name=str(each), extent=each.extent, place=places[each])
        for each in coordinates
    }


def _id_of(e: Emission, counter: Term, unit: int, extent: int) -> Term:
    text = counter.text if unit == 1 else f"{counter.text} // {unit}"
    return Term(text=e.writer.assign(f"({text}) % {extent}", "pid"), element=I32)

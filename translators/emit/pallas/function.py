"""A kernel as a function that calls a Pallas kernel."""

from collections.abc import Mapping, Sequence, Set

from translators.access.analysis import Analysis
from translators.access.expression import (
    Variable,
    leaves,
)
from translators.emit.classes import classes_of
from translators.emit.driving import run
from translators.emit.emission import Note
from translators.emit.facts import ArgumentFact, ArrayFact, ScalarFact
from translators.emit.finishing import drop_unused
from translators.emit.jax import RULES as JAX_RULES
from translators.emit.jax import JaxFunction
from translators.emit.pallas import calling, computing, described, functions, reading, writing
from translators.emit.pallas.ahead import known_ahead
from translators.emit.pallas.closed import needless_bounds
from translators.emit.pallas.elements import rounding
from translators.emit.pallas.elements.carriers import IN_WORDS, OF_FLOAT16, Carriers, array_of
from translators.emit.pallas.emission import CoarserError, StepEmission, TooLargeError
from translators.emit.pallas.index_maps import IndexMaps
from translators.emit.pallas.layout import joined
from translators.emit.pallas.nan_rows import may_be_nan
from translators.emit.pallas.plan import Plan
from translators.emit.pallas.preamble import needed
from translators.emit.pallas.stepping import run_in_parts
from translators.emit.pallas.steps_order import check_places, is_visited, order_of, semantics_of
from translators.emit.pallas.turned import turned
from translators.emit.pallas.windows import StraightError, Window
from translators.emit.pointers import pointee_of
from translators.emit.python_file import python_file
from translators.emit.statements import Statement, every, names_in
from translators.emit.terms import PointerTerm, Term, constant, dtype, is_wide
from translators.emit.tiles import unviewed, view
from translators.emit.writer import Writer
from translators.graph.errors import GraphError
from translators.graph.graph import Module, users
from translators.graph.types import I32, I64, PointerType, element_of

# Ops that touch memory and have no form on windows.
_REFUSED = (
    "tt.atomic_cas",
    "tt.atomic_poll",
    "tt.descriptor_gather",
    "tt.descriptor_scatter",
)
RULES = {
    **{name: rule for name, rule in JAX_RULES.items() if name not in _REFUSED},
    **computing.RULES,
    **reading.RULES,
    **writing.RULES,
    **described.RULES,
    **rounding.RULES,
    **calling.RULES,
    **functions.RULES,
}

# What the blocks of a step may take of vector memory, each twice: while one is computed on, the
# next one arrives. Every generation from v5e on has more than 60 MiB (docs/pallas-capabilities.md);
# a kernel that asks for less finds its operands copied to vector memory as a whole before it runs,
# where they are small (7x, docs/kernel-model.md).
_MOST_BYTES = 36 << 20
_LIMIT = 60 << 20
# Elements of a value of many iterations.
_LARGEST = 1 << 20
_INTERPRET = "interpret: as `pl.pallas_call` takes it; not at all by default."


def emit_pallas(
    module: Module, analysis: Analysis, arguments: Sequence[ArgumentFact], plan: Plan
) -> JaxFunction:
    """Writes the kernel of a verified module as a Pallas kernel for TPU, and a call of it.

    Args:
      module: the kernel, with the functions that it calls.
      analysis: its accesses, for the launch that the function is specialised on.
      arguments: one fact for each of the kernel's arguments.
      plan: which programs make a step of the grid.

    Raises:
      GraphError: part of the kernel has no form as a kernel of blocks; at the kernel's line.
    """
    whole: dict[int, dict[int, int]] = {}
    lying = turned(module, analysis, arguments)
    while True:
        try:
            return _Maker(module, analysis, arguments, plan, whole, lying).made()
        except CoarserError as error:
            whole.setdefault(error.buffer, {}).update(error.dimensions)
        except StraightError as error:
            lying -= {error.buffer}


class _Maker:
    """One emission, from the facts to the text of the file."""

    def __init__(
        self,
        module: Module,
        analysis: Analysis,
        arguments: Sequence[ArgumentFact],
        plan: Plan,
        whole: Mapping[int, Mapping[int, int]],
        lying: Set[int],
    ) -> None:
        self._module = module
        self._facts = arguments
        self._plan = plan
        self._writer = Writer(("pl", "pltpu", "interpret"))
        self._name = self._writer.fresh(module.kernel.name)
        self._numbers: dict[str, tuple[str, ScalarFact, str]] = {}
        self._buffers = buffers = Carriers(self._writer)
        for index, fact in enumerate(arguments):
            if isinstance(fact, ArrayFact) and fact.alias == index:
                buffers.add(index, fact, pointee_of(module.kernel.arguments[index].type))
        self._given = {key: state.name for key, state in buffers.states.items()}
        self._counters = {
            each: self._writer.fresh(f"{name}_step") for each, name in plan.names.items()
        }
        self._last = ""
        self._places = {each: self._writer.fresh(name) for each, name in plan.names.items()}
        programs = {
            each: Term(text=self._counters[each], element=I32) if each in plan.grid else counted
            for each, counted in plan.programs.items()
        }
        self._emission = StepEmission(
            module=module,
            analysis=analysis,
            writer=self._writer,
            buffers=buffers,
            rules=RULES,
            programs=programs,
            largest=_LARGEST,
            blocked=True,
            grid=plan.grid,
            whole=whole,
            turned=lying,
            strict=may_be_nan(module),
            needless=needless_bounds(analysis, classes_of(module.kernel)),
        )
        self._maps = IndexMaps(
            plan=plan,
            places=self._places,
            windows=self._emission.windows,
            steering=self._emission.steering,
        )

    def made(self) -> JaxFunction:
        """The function."""
        e, kernel = self._emission, self._module.kernel
        self._writer.location = None
        for state in e.buffers.states.values():
            if is_wide(state.element):
                raise GraphError(
                    f"`{state.fact.name}` holds `{state.element}`, which TPU kernels do not",
                    kernel.location,
                )
            converted = e.buffers.entered(state)
            if converted:
                state.name = self._writer.assign(converted, state.fact.name)
        with self._writer.nested() as block:
            for index, fact in enumerate(self._facts):
                self._enter(index, fact)
            if self._plan.parts is None:
                run(e, kernel.body)
            else:
                run_in_parts(e, kernel.body, self._plan.parts)
            e.keep_what_is_left()
        self._look_ahead()
        self._writer.location = None
        self._drop_unread(block)
        self._check_memory()
        grid = self._maps.order = order_of(e, self._plan, self._maps)
        block[:0] = [*self._begin(grid), *self._keep(grid)]
        name = self._writer.fresh("kernel")
        inputs, outputs, aliases = self._operands()
        parameters = [each for each, *_ in (*inputs, *outputs)]
        parameters += [each.reference for each in e.totals.values()]
        self._writer.define(name, ", ".join(parameters), block, "")
        self._called(name, grid, inputs, outputs, aliases)
        results = self._buffers.results(e.outputs)
        returns = list(results.values())
        whole = returns[0] if len(returns) == 1 else f"({', '.join(returns)})"
        scalars = {name: fact for name, fact, _ in self._numbers.values()}
        if self._is_wide():
            e.notes.append(Note(text=IN_WORDS))
        if self._buffers.of_float16:
            e.notes.append(Note(text=OF_FLOAT16))
        body, free = self._writer.finished(
            whole, [self._name, "interpret", *self._given.values(), *scalars]
        )
        return self._file(body, free, scalars, tuple(results))

    def _enter(self, index: int, fact: ArgumentFact) -> None:
        e = self._emission
        value = self._module.kernel.arguments[index]
        element = element_of(value.type)
        if isinstance(fact, ArrayFact):
            e.aliases[index] = fact.alias
            if isinstance(element, PointerType):
                offset = constant(0, I32)
                e.put(value, PointerTerm(buffer=fact.alias, offset=offset, pointee=element.pointee))
            return
        assert element is not None
        if not fact.free:
            number = int(fact.value)
            narrow = element == I64 and I32.smallest <= number <= I32.largest
            e.put(value, constant(number, I32 if narrow else element))
            return
        if value not in users(self._module.kernel.body):
            return
        if is_wide(element):
            raise GraphError(
                f"`{fact.name}` is `{element}`, which TPU kernels do not compute with",
                self._module.kernel.location,
            )
        given = {each.name: name for name, each, _ in self._numbers.values()}
        name = given.get(fact.name) or self._writer.fresh(fact.name)
        reference = self._writer.fresh(f"{fact.name}_ref")
        array = array_of(self._writer, name, fact, element)
        self._numbers[reference] = (name, fact, array)
        text = f"{reference}[0]"
        e.put(value, Term(text=self._writer.assign(text, fact.name), element=element))

    def _drop_unread(self, block: list[Statement]) -> None:
        """Drops the windows that only attempts asked for that were given up."""
        e = self._emission
        drop_unused(block, set())
        used = {name for each in every(block) for name in names_in(each.text)}
        read = [each for each in e.windows.values() if each.reference in used]
        led = {each for window in read for each in self._maps.led(window)}
        for place, window in list(e.windows.items()):
            if window.reference not in used | led:
                del e.windows[place]
        for reference in list(self._numbers):
            if reference not in used:
                del self._numbers[reference]

    def _look_ahead(self) -> None:
        """Says which iteration is the last that a program has, where data decide that."""
        parts, e = self._plan.parts, self._emission
        if parts is None or all(each in self._plan.grid for each in leaves(parts.last)):
            return
        self._writer.location = parts.op.location
        places = {each: name for each, name in self._places.items() if each != parts.variable}
        self._maps.ahead = ahead = known_ahead(e, parts.last, places)
        name = self._writer.fresh("last")
        given = [places[each] for each in ahead.places]
        taken = ", ".join((*given, *(each.reference for each in ahead.windows)))
        self._writer.define(name, taken, ahead.body, ahead.text)
        # For each place in the grid at once, and only then flat: scalar memory has one dimension.
        arrays = (self._operand(each) for each in ahead.windows)
        text = f"{name}({', '.join((*given, *arrays))})"
        for each in reversed(ahead.places):
            count = f"jnp.arange({self._plan.grid[each]}, dtype=jnp.int32)"
            text = f"jax.vmap(lambda {places[each]}: {text})({count})"
        self._maps.last = self._writer.fresh("last_ref")
        self._last = joined(f"jnp.reshape({text}, -1)")

    def _begin(self, grid: Sequence[Variable]) -> list[Statement]:
        """The names of the step's place in the grid."""
        return [
            Statement((self._counters[each],), f"pl.program_id({place})", named=True)
            for place, each in enumerate(grid)
        ]

    def _keep(self, grid: Sequence[Variable]) -> list[Statement]:
        """What windows begin as that are not written as a whole."""
        e = self._emission
        found = []
        for buffer in e.outputs:
            window = e.outputs[buffer]
            if buffer not in e.kept:
                continue
            places = [str(each) for each in range(window.sizes[0])] if window.scalars else ["..."]
            copies = [
                Statement((), f"{window.reference}[{each}] = {window.initial}[{each}]", guard=True)
                for each in places
            ]
            moving = {each for index in window.index for each in leaves(index)}
            still = [self._counters[each] for each in grid if each not in moving]
            if still:
                first = " & ".join(f"({each} == 0)" for each in still)
                name = self._writer.fresh("keep")
                copies = [
                    Statement((name,), "", guard=True, body=copies, decorator=f"pl.when({first})")
                ]
            found += copies
        return found

    # The call

    def _operands(
        self,
    ) -> tuple[list[tuple[str, str, str]], list[tuple[str, str, str]], dict[int, int]]:
        """References, specifications and arrays of what goes in and out, and what is one array."""
        e = self._emission
        led = self._maps.prefetched()
        first = [each for each in e.windows.values() if each.reference in led]
        inputs = [(each.reference, "", self._operand(each)) for each in first]
        if self._maps.last in led:
            inputs.append((self._maps.last, "", self._last))
        for reference, (*_, array) in self._numbers.items():
            inputs.append((reference, "pl.BlockSpec(memory_space=pltpu.SMEM)", array))
        for window in e.windows.values():
            if window in first:
                continue
            inputs.append(
                (window.reference, self._maps.specification(window), self._operand(window))
            )
        outputs: list[tuple[str, str, str]] = []
        aliases: dict[int, int] = {}
        for place, window in enumerate(e.outputs.values()):
            check_places(e, window)
            if not is_visited(window, self._plan.grid):
                # What no step comes to stays where it is.
                e.initial(window)
                aliases[len(inputs)] = place
            if window.initial:
                inputs.append(
                    (window.initial, self._maps.specification(window), self._operand(window))
                )
            shape = f"jax.ShapeDtypeStruct({window.sizes}, {dtype(window.element)})"
            outputs.append((window.reference, self._maps.specification(window), shape))
        return inputs, outputs, aliases

    def _operand(self, window: Window) -> str:
        """The array that a window is cut from, in the form that it is cut from."""
        state = self._emission.buffers.states[window.buffer]
        return joined(window.layout.formed(view(state, window.spans)))

    def _bytes(self) -> int:
        """What the blocks of a step take of vector memory."""
        e = self._emission
        blocks = (*e.windows.values(), *e.outputs.values())
        totals = sum(each.bytes for each in e.totals.values())
        return totals + 2 * sum(each.bytes for each in blocks if not each.scalars)

    def _check_memory(self) -> None:
        e = self._emission
        windows = [each for each in e.windows.values() if not each.scalars]
        size = self._bytes()
        if size > _MOST_BYTES:
            largest = max((*windows, *e.outputs.values()), key=lambda each: each.bytes)
            name = e.buffers.states[largest.buffer].fact.name
            raise TooLargeError(
                f"a step needs {size / 2**20:.0f} MiB of vector memory, {largest.shape} of "
                f"`{name}` the most",
                self._module.kernel.location,
            )

    def _called(
        self,
        name: str,
        grid: Sequence[Variable],
        inputs: Sequence[tuple[str, str, str]],
        outputs: Sequence[tuple[str, str, str]],
        aliases: Mapping[int, int],
    ) -> None:
        """Takes down the call, and what the arrays are after it."""
        e = self._emission
        sizes = [str(self._plan.grid[each]) for each in grid] or ["1"]
        semantics = [f'"{semantics_of(e, self._plan, each)}"' for each in grid] or ['"arbitrary"']
        listed = ", ".join(each for _, each, _ in inputs if each)
        shapes, places = [each for *_, each in outputs], [each for _, each, _ in outputs]
        single = len(outputs) == 1
        steps = [
            f"grid=({', '.join(sizes)}{',' if len(sizes) == 1 else ''})",
            f"in_specs=[{listed}]",
            f"out_specs={places[0] if single else f'[{chr(44).join(places)}]'}",
        ]
        if e.totals:
            held = [each.memory for each in e.totals.values()]
            steps.append(f"scratch_shapes=[{', '.join(held)}]")
        led = self._maps.prefetched()
        if led:
            steps = [
                f"grid_spec=pltpu.PrefetchScalarGridSpec(num_scalar_prefetch={len(led)}, "
                f"{', '.join(steps)})"
            ]
        options = [
            name,
            *steps,
            f"out_shape={shapes[0] if single else f'[{chr(44).join(shapes)}]'}",
        ]
        if aliases:
            pairs = ", ".join(f"{each}: {to}" for each, to in aliases.items())
            options.append(f"input_output_aliases={{{pairs}}}")
        comma = "," if len(semantics) == 1 else ""
        limit = f", vmem_limit_bytes={_LIMIT >> 20} << 20"
        options.append(
            "compiler_params=pltpu.CompilerParams(dimension_semantics="
            f"({', '.join(semantics)}{comma}){limit})"
        )
        options.append("interpret=interpret")
        arrays = ", ".join(each for *_, each in inputs)
        call = f"pl.pallas_call({', '.join(options)})"
        text = f"{call}({arrays})"
        if self._is_wide():
            call = self._writer.assign(call, "call", pinned=True)
            text = f"{self._writer.helper('_without_x64')}({call}, {arrays})"
        hints = [e.buffers.states[key].fact.name for key in e.outputs]
        names = (
            [self._writer.assign(text, hints[0])] if single else self._writer.unpack(text, hints)
        )
        for (buffer, window), given in zip(e.outputs.items(), names, strict=True):
            state = e.buffers.states[buffer]
            restored = joined(unviewed(window.layout.restored(given), state, window.spans))
            state.name = (
                given if restored == given else self._writer.assign(restored, state.fact.name)
            )

    def _is_wide(self) -> bool:
        """Whether the caller may give, or get, integers of 64 bits."""
        numbers = (fact for _, fact, _ in self._numbers.values())
        return self._buffers.in_words or any(each.word is not None for each in numbers)

    def _file(
        self,
        body: list[str],
        free: frozenset[str],
        scalars: Mapping[str, ScalarFact],
        results: tuple[str, ...],
    ) -> JaxFunction:
        e = self._emission
        facts: dict[str, ArrayFact] = {}
        for key, name in self._given.items():
            if name in free:
                facts.setdefault(name, e.buffers.states[key].fact)
        arrays = list(facts.items())
        used = {name: fact for name, fact in scalars.items() if name in free}
        source = python_file(
            name=self._name,
            kernel=self._module.kernel.name,
            arguments=self._facts,
            arrays=arrays,
            scalars=used,
            results=results,
            body=body,
            helpers=needed(self._writer.helpers, body),
            options=[("interpret=False", _INTERPRET)],
        )
        return JaxFunction(
            name=self._name,
            source=source,
            parameters=tuple(fact.name for _, fact in arrays),
            scalars=tuple(used),
            results=results,
            wide=self._is_wide(),
            notes=tuple(e.notes),
            pallas=True,
        )

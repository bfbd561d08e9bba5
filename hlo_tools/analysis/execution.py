"""What of a module runs, in which order, and how often in one step.

A step is one execution of the module. Computations that run instruction by instruction are its
entry and what `while`, `call`, `conditional` and `async-start` call from there; the bodies of
fusions and the computations that `reduce`, `sort` and the like apply are part of one instruction.
"""

from collections.abc import Iterator
from functools import cached_property
from typing import Literal, NamedTuple

from hlo_tools.analysis.trip_count import trip_count
from hlo_tools.hlo.module import Computation, Instruction, Module

MAX_TIMES = 1 << 53
"""A computation that would run more often than this per step is hostile text: unknown."""

_Role = Literal["body", "condition", "other"]
_CALLING = frozenset({"while", "call", "conditional", "async-start", "call-start"})
_NEVER_FUSED = frozenset({"while", "call", "conditional", "send", "recv", "infeed", "outfeed"})


class _CallSite(NamedTuple):
    instruction: Instruction
    role: _Role


class Execution:
    """The computations of a module that run, and how often.

    Compiled text whose entry computation is missing is read as far as it shows what it is: a
    computation that nothing calls is a loop body or the like if it takes a tuple or holds control
    flow or asynchronous operations; otherwise it may as well be the body of a fusion, and does
    not count as executed.

    Attributes:
      module: what is analysed.
      executed: the computations that run, each once, in the order of their first call.
    """

    def __init__(self, module: Module) -> None:
        self.module = module
        self._sites: dict[Computation, list[_CallSite]] = {}
        self._trips: dict[Instruction, int | None] = {}
        self._roots = [module.entry] if module.entry is not None else _headless_roots(module)
        self.executed, self._callers_first = self._walk()

    def _walk(self) -> tuple[tuple[Computation, ...], list[Computation]]:
        """The executed computations in order of first call, and so that callers precede callees.

        A call that closes a cycle, which only broken text holds, is left out.
        """
        seen: dict[Computation, None] = {}
        finished: list[Computation] = []
        for root in self._roots:
            if root in seen:
                continue
            seen[root] = None
            path = [(root, _calls(root))]
            on_path = {root}
            while path:
                computation, calls = path[-1]
                for site, callee in calls:
                    if callee in on_path:
                        continue
                    self._sites.setdefault(callee, []).append(site)
                    if callee not in seen:
                        seen[callee] = None
                        on_path.add(callee)
                        path.append((callee, _calls(callee)))
                        break
                else:
                    path.pop()
                    on_path.discard(computation)
                    finished.append(computation)
        finished.reverse()
        return tuple(seen), finished

    def instructions(self) -> Iterator[Instruction]:
        """The instructions of the executed computations, in order."""
        for computation in self.executed:
            yield from computation.instructions

    @property
    def callees_first(self) -> tuple[Computation, ...]:
        """The executed computations, each behind those that it calls."""
        return tuple(reversed(self._callers_first))

    def runs(self, computation: Computation) -> bool:
        """Whether it is among the executed ones."""
        return computation in self._exact

    def callers(self, computation: Computation) -> tuple[Instruction, ...]:
        """The executed instructions that call it, in the order in which they first run."""
        return tuple(site.instruction for site in self._sites.get(computation, ()))

    def calls(self, instruction: Instruction) -> tuple[tuple[Computation, int], ...]:
        """The computations that run at an instruction, and how often each time it is reached.

        Counted as `times_at_least` counts.
        """
        return tuple(
            (callee, 1 if (trips := self._trips_at(site)) is None else trips)
            for site, callee in _calls_at(instruction)
        )

    def trip_count(self, loop: Instruction) -> int | None:
        """How often a `while` runs its body each time it is reached; `None` if unknown."""
        if loop not in self._trips:
            self._trips[loop] = trip_count(loop)
        return self._trips[loop]

    def times(self, computation: Computation) -> int | None:
        """How often it runs in one step; `None` where a loop around it has no known trip count.

        A loop's condition runs once more than its body. Every branch of a conditional counts as
        taken whenever the conditional is reached, so that for branches this is an upper bound.
        A computation that does not run counts 0.
        """
        return self._exact.get(computation, 0)

    def times_at_least(self, computation: Computation) -> int:
        """As `times`, with one trip for every loop whose trip count is unknown."""
        return self._counted.get(computation, 0)

    def loop_of(self, computation: Computation) -> Instruction | None:
        """The innermost `while` whose body or condition it is, or is called from.

        For a computation that is called from several places: that of the first one in a loop.
        """
        return self._enclosing[0].get(computation)

    def wrapper_of(self, computation: Computation) -> Instruction | None:
        """The innermost `async-start` under which it runs, beside what follows that instruction."""
        return self._enclosing[1].get(computation)

    @cached_property
    def unknown_loops(self) -> tuple[Instruction, ...]:
        """The executed `while` instructions without a known trip count."""
        loops = (i for i in self.instructions() if i.opcode == "while")
        return tuple(loop for loop in loops if self.trip_count(loop) is None)

    @cached_property
    def _exact(self) -> dict[Computation, int | None]:
        # Where the text breaks off before the entry, nothing says how often its pieces run.
        known = self.module.entry is not None or not _is_cut_off(self.module)
        return self._count(root=1 if known else None, unknown_trips=None)

    @cached_property
    def _counted(self) -> dict[Computation, int]:
        times = self._count(root=1, unknown_trips=1)
        return {c: MAX_TIMES if count is None else count for c, count in times.items()}

    def _count(
        self, *, root: int | None, unknown_trips: int | None
    ) -> dict[Computation, int | None]:
        times: dict[Computation, int | None] = dict.fromkeys(self._roots, root)
        for computation in self._callers_first:
            sites = self._sites.get(computation)
            if not sites:
                continue
            total: int | None = 0
            for site in sites:
                base = times[site.instruction.computation]
                trips = self._trips_at(site)
                factor = unknown_trips if trips is None else trips
                if total is None or base is None or factor is None:
                    total = None
                else:
                    total += base * factor
            times[computation] = total if total is None or total <= MAX_TIMES else None
        return times

    def _trips_at(self, site: _CallSite) -> int | None:
        if site.role == "other":
            return 1
        trips = self.trip_count(site.instruction)
        return trips + 1 if trips is not None and site.role == "condition" else trips

    @cached_property
    def _enclosing(
        self,
    ) -> tuple[dict[Computation, Instruction], dict[Computation, Instruction]]:
        loops: dict[Computation, Instruction] = {}
        wrappers: dict[Computation, Instruction] = {}
        for computation in self._callers_first:
            for site in self._sites.get(computation, ()):
                caller = site.instruction
                loop = loops.get(caller.computation) if site.role == "other" else caller
                if loop is not None:
                    loops.setdefault(computation, loop)
                starts = caller.opcode.endswith("-start")
                wrapper = caller if starts else wrappers.get(caller.computation)
                if wrapper is not None:
                    wrappers.setdefault(computation, wrapper)
        return loops, wrappers


def _calls(computation: Computation) -> Iterator[tuple[_CallSite, Computation]]:
    """The computations that run when this one does, call by call."""
    for instruction in computation.instructions:
        if instruction.opcode in _CALLING:
            yield from _calls_at(instruction)


def _calls_at(instruction: Instruction) -> Iterator[tuple[_CallSite, Computation]]:
    if instruction.opcode == "while":
        condition, body = instruction.called("condition"), instruction.called("body")
        if condition is not None:
            yield _CallSite(instruction, "condition"), condition
        if body is not None:
            yield _CallSite(instruction, "body"), body
    elif instruction.opcode in _CALLING:
        for callee in instruction.called_computations:
            yield _CallSite(instruction, "other"), callee


def _headless_roots(module: Module) -> list[Computation]:
    """Where execution starts in text without an entry, as far as that can be told."""
    # Where everything is called by something, the text is broken: XLA takes the last one then.
    uncalled = module.roots() or module.computations[-1:]
    if not module.is_scheduled and all(i.opcode != "fusion" for i in module.instructions()):
        return uncalled
    running = [c for c in uncalled if any(map(_shows_execution, c.instructions))]
    return running if running or _is_cut_off(module) else uncalled


def _is_cut_off(module: Module) -> bool:
    """Whether a part of the module, its entry perhaps, is not in the text."""
    headless = module.entry is None and module.attribute("entry_computation_layout") is not None
    return module.truncated or headless


def _shows_execution(instruction: Instruction) -> bool:
    """Whether the instruction never stands in a fusion's body."""
    opcode = instruction.opcode
    if opcode == "parameter":
        return instruction.shape.is_tuple
    return opcode in _NEVER_FUSED or opcode.endswith(("-start", "-done"))

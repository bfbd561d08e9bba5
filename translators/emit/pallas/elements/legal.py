"""A kernel as one that TPUs compute: no types that they have not."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from translators.access.analysis import Analysis, analyze
from translators.access.launch import Specialization
from translators.access.states import Pointer
from translators.emit.facts import ArgumentFact, ArrayFact, ScalarFact
from translators.emit.pallas.elements.holding import held
from translators.emit.pallas.elements.splitting import split
from translators.emit.pallas.totals import by_dimensions
from translators.graph.graph import Module, Op, Value, walk
from translators.graph.types import F16, F32, element_of

_STORES = ("tt.store", "tt.descriptor_store")


@dataclass(frozen=True, slots=True, kw_only=True)
class Legal:
    """A kernel of types that TPUs have.

    Attributes:
      module: the kernel.
      analysis: its accesses.
      arguments: one fact for each of its arguments; their types are what the caller gives.
    """

    module: Module
    analysis: Analysis
    arguments: Sequence[ArgumentFact]


def legal(module: Module, analysis: Analysis, arguments: Sequence[ArgumentFact]) -> Legal:
    """The kernel with all values in types that TPUs compute with.

    Args:
      module: the kernel.
      analysis: its accesses.
      arguments: one fact for each of its arguments.

    Raises:
      GraphError: there is no such form of it; at the kernel's line.
    """
    whole = by_dimensions(module)
    if whole is not module:
        module, analysis = whole, analyze(whole, analysis.launch)
    given = {
        index: int(fact.value)
        for index, fact in enumerate(arguments)
        if isinstance(fact, ScalarFact) and not fact.free
    }
    words = split(module, analysis, given)
    if words is not None:
        module = words.module
        arguments = _with_uppers(arguments, words.uppers)
        analysis = analyze(module, _launch(analysis.launch, words.uppers))
    made = held(module, _unread(module, analysis, arguments))
    if made is not module:
        analysis = analyze(made, analysis.launch)
    return Legal(module=made, analysis=analysis, arguments=arguments)


def _with_uppers(
    arguments: Sequence[ArgumentFact], uppers: Mapping[int, int]
) -> list[ArgumentFact]:
    """The facts of the arguments, those of upper words behind all others."""
    lower = [
        replace(fact, word=0) if index in uppers else fact for index, fact in enumerate(arguments)
    ]
    upper: list[ArgumentFact] = []
    for index in uppers:
        fact = replace(arguments[index], word=1)
        upper.append(
            replace(fact, alias=uppers[fact.alias]) if isinstance(fact, ArrayFact) else fact
        )
    return [*lower, *upper]


def _launch(launch: Specialization, uppers: Mapping[int, int]) -> Specialization:
    """The launch, with the arrays of upper words."""
    upper = {to: launch.buffers[index] for index, to in uppers.items() if index in launch.buffers}
    return replace(launch, buffers={**launch.buffers, **upper})


def _unread(module: Module, analysis: Analysis, arguments: Sequence[ArgumentFact]) -> frozenset[Op]:
    """Casts to `f16` of which all that becomes is written to arrays that the kernel never reads."""
    aliases = {
        index: fact.alias for index, fact in enumerate(arguments) if isinstance(fact, ArrayFact)
    }
    written: dict[Op, int] = {}
    read: set[int] = set()
    for access in analysis.accesses:
        if not isinstance(access.pointer, Pointer):
            return frozenset()
        argument = aliases[access.pointer.argument]
        if access.op.name in _STORES:
            written[access.op] = argument
        else:
            read.add(argument)
    uses: dict[Value, list[Op]] = {}
    for op in walk(module.kernel.body):
        for operand in op.operands:
            uses.setdefault(operand, []).append(op)
    return frozenset(
        op
        for op in walk(module.kernel.body)
        if op.name in ("arith.truncf", "tt.fp_to_fp")
        and (element_of(op.operands[0].type), element_of(op.result.type)) == (F32, F16)
        and op.text("rounding", "rtne") == "rtne"
        and all(use in written and written[use] not in read for use in uses.get(op.result, ()))
    )

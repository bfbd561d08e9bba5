"""Kernels whose programs have to run one after another."""

from collections.abc import Mapping

from translators.access.analysis import Analysis
from translators.access.sharing import conflict_between_programs
from translators.emit.emission import Note
from translators.graph.graph import Module, Op, walk


def why_ordered(module: Module, analysis: Analysis, aliases: Mapping[int, int]) -> Note | None:
    """Why the programs of a kernel cannot be computed at once; `None` if they can.

    As `program_order` says it.
    """
    return program_order(module, analysis, aliases)[0]


def program_order(
    module: Module, analysis: Analysis, aliases: Mapping[int, int]
) -> tuple[Note | None, Note | None]:
    """Why programs have to run one after another, and what their order is left to.

    They look at what others did where what an atomic update gives is used, where memory is
    compared and swapped, where an update has no form that combines many of them, and where one
    program is known to read or write what another one writes.

    Where only data decide whether programs meet, nothing is lost when all of them take each op
    together: Triton starts programs in no order, so that this is one of the orders in which the
    kernel itself may run. Where they meet all the same, its result is left to chance. A program
    that waits for another one is the exception: it has to come after it.

    Args:
      module: the kernel.
      analysis: its accesses, in terms of program ids.
      aliases: arguments that are the same array as another one, with that one.

    Returns:
      Either may be `None`, and one of them is.
    """
    op = _looking(module)
    if op is not None:
        text = f"programs run one after another: `{op.name}` depends on those before"
        return Note(text=text, line=_line(op)), None
    found = conflict_between_programs(analysis, aliases)
    if found is None:
        return None, None
    pair = f"`{found.other.name}` at line {_line(found.other)}"
    line = _line(found.write)
    if found.known or _waits(module, (found.write, found.other)):
        touches = "touches" if found.known else "may touch"
        return Note(
            text=f"programs run one after another: {pair} {touches} what `{found.write.name}` of "
            "another program writes",
            line=line,
        ), None
    return None, Note(
        text=f"programs take each op together: should data make {pair} touch what "
        f"`{found.write.name}` of another program writes, no order of the two is kept",
        line=line,
    )


def _waits(module: Module, pair: tuple[Op, Op]) -> bool:
    """Whether one of two ops may be there for a program to wait for another one."""
    if any(op.name in ("tt.atomic_load", "tt.atomic_store") for op in pair):
        return True
    loops = (op for op in walk(module.kernel.body) if op.name == "scf.while")
    inside = {op for loop in loops for region in loop.regions for op in walk(region)}
    return any(op in inside for op in pair)


def _line(op: Op) -> int:
    return op.location.line if op.location else 0


def _looking(module: Module) -> Op | None:
    """An op whose result depends on the programs before, if that matters."""
    used = {operand for op in walk(module.kernel.body) for operand in op.operands}
    for op in walk(module.kernel.body):
        if op.name in ("tt.atomic_cas", "tt.atomic_poll"):
            return op
        if op.name == "tt.atomic_rmw" and (
            op.result in used or op.text("atomic_rmw_op") in ("and", "or", "xor", "exch")
        ):
            return op
    return None

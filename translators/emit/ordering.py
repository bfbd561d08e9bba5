"""Kernels whose programs have to run one after another."""

from collections.abc import Mapping

from translators.access.analysis import Analysis
from translators.access.sharing import Conflict, conflict_between_programs
from translators.emit.emission import Note
from translators.graph.graph import Module, Op, walk


def why_ordered(module: Module, analysis: Analysis, aliases: Mapping[int, int]) -> Note | None:
    """Why the programs of a kernel cannot be computed at once; `None` if they can.

    They look at what others did where what an atomic update gives is used, where memory is
    compared and swapped, where an update has no form that combines many of them, and where one
    program reads or writes what another one writes.

    Args:
      module: the kernel.
      analysis: its accesses, in terms of program ids.
      aliases: arguments that are the same array as another one, with that one.
    """
    op = _looking(module)
    if op is not None:
        return Note(
            text=f"programs run one after another: `{op.name}` depends on those before",
            line=_line(op),
        )
    found = conflict_between_programs(analysis, aliases)
    return None if found is None else _note(found)


def _note(found: Conflict) -> Note:
    may = "" if found.known else "may "
    touches = "touches" if found.known else "touch"
    return Note(
        text=(
            f"programs run one after another: `{found.other.name}` at line {_line(found.other)} "
            f"{may}{touches} what `{found.write.name}` of another program writes"
        ),
        line=_line(found.write),
    )


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

"""From changed instructions to causes: what happened, where in the source, what it costs."""

from collections import defaultdict
from collections.abc import Sequence

from hlo_tools.analysis.collectives import Collective
from hlo_tools.comparison import Cause, Change
from hlo_tools.diff.groups import grouped
from hlo_tools.diff.kernels import Kernel, Pair, changed_pairs
from hlo_tools.diff.kinds import describe
from hlo_tools.diff.matching import Matching
from hlo_tools.hlo.location import SourceLocation
from hlo_tools.hlo.module import Instruction


def causes(matching: Matching, first_lines: tuple[int, int]) -> tuple[Cause, ...]:
    """The causes of the difference of two programs, most seconds lost first.

    Groups of one kind that come from one line of the source, as those of unrolled layers do, are
    one cause.

    Args:
      matching: the two programs.
      first_lines: 1-based lines of their files on which the modules start.
    """
    merged: dict[tuple[object, ...], list[tuple[str, list[Pair]]]] = defaultdict(list)
    for group in grouped(changed_pairs(matching)):
        kind, message = describe(group)
        told_by, _ = _headline(group)
        place = told_by.program.provenance.location(_origin(told_by))
        where: object = (place.file, place.line) if place else _name(told_by) or id(group)
        merged[kind, where].append((message, group))
    found = [_cause(str(key[0]), groups, first_lines) for key, groups in merged.items()]
    return tuple(sorted(found, key=_badness))


def _cause(kind: str, groups: list[tuple[str, list[Pair]]], first_lines: tuple[int, int]) -> Cause:
    message, first = max(groups, key=lambda item: _size(item[1]))
    pairs = [pair for _, group in groups for pair in group]
    if len(groups) > 1:
        message += f"; and {len(groups) - 1} more like it"
    told_by, is_new = _headline(first)
    return Cause(
        kind=kind,
        message=message,
        source=told_by.program.provenance.location(_origin(told_by)),
        source_is_new=is_new,
        op_name=_name(told_by),
        seconds=sum(pair.seconds for pair in pairs),
        hbm_bytes=sum(pair.hbm_bytes for pair in pairs),
        changes=tuple(_change(pair, first_lines) for pair in sorted(pairs, key=_order)),
    )


def _headline(group: Sequence[Pair]) -> tuple[Kernel, bool]:
    """The kernel of the largest change that names the place, and whether the new program's is it.

    A kernel that is there on both sides is named by the new one.
    """
    first = max(group, key=lambda pair: _size([pair]))
    return first.kernels[-1], first.new is not None


def _size(pairs: Sequence[Pair]) -> tuple[float, int]:
    return abs(sum(p.seconds for p in pairs)), abs(sum(p.hbm_bytes for p in pairs))


def _origin(kernel: Kernel) -> Instruction:
    """The instruction whose place is that of a kernel: of a collective, what it says it does."""
    collective: Collective | None = kernel.collective
    return collective.operation if collective is not None else kernel.instruction


def _name(kernel: Kernel) -> str | None:
    return kernel.program.provenance.op_name(_origin(kernel))


def _change(pair: Pair, first_lines: tuple[int, int]) -> Change:
    old, new = pair.old, pair.new
    return Change(
        old=old.side(first_lines[0]) if old is not None else None,
        new=new.side(first_lines[1]) if new is not None else None,
    )


def _order(pair: Pair) -> tuple[float, int, int]:
    return -abs(pair.seconds), -abs(pair.hbm_bytes), pair.kernels[-1].instruction.line


def _badness(cause: Cause) -> tuple[object, ...]:
    place: SourceLocation | None = cause.source
    where = (place.file, place.line) if place is not None else ("", 0)
    return -cause.seconds, -cause.hbm_bytes, *where, cause.kind, cause.message

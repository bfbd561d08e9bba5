"""What takes more or less of device memory at the fullest moment of a step."""

from collections import defaultdict

from hlo_tools.analysis.liveness import LiveBuffer
from hlo_tools.analysis.program import Program
from hlo_tools.comparison import LiveChange
from hlo_tools.diff.matching import Matching
from hlo_tools.hlo.shape import HBM_SPACE, format_shape


def live_changes(matching: Matching) -> tuple[LiveChange, ...]:
    """The buffers of the two fullest moments that are not in both, the largest growth first.

    Buffers of one kind, type and layout count together: which of them is which changes nothing.
    """
    old = _by_type(matching.old.program)
    new = _by_type(matching.new.program)
    found = []
    for key in dict.fromkeys((*old, *new)):
        before, after = old.get(key, []), new.get(key, [])
        if sum(b.bytes for b in before) != sum(b.bytes for b in after):
            found.append(_change(matching, before, after))
    return tuple(sorted(found, key=_badness))


def _by_type(program: Program) -> dict[tuple[str, str], list[LiveBuffer]]:
    groups: dict[tuple[str, str], list[LiveBuffer]] = defaultdict(list)
    for buffer in program.liveness.live_at_peak(HBM_SPACE):
        groups[buffer.kind, format_shape(buffer.shape)].append(buffer)
    return groups


def _change(matching: Matching, old: list[LiveBuffer], new: list[LiveBuffer]) -> LiveChange:
    """The change, shown by a buffer that only the side with more of them has, if there is one."""
    grown = sum(b.bytes for b in new) > sum(b.bytes for b in old)
    more, fewer = (new, old) if grown else (old, new)
    partner = matching.partner_of_new if grown else matching.partner
    program = matching.new.program if grown else matching.old.program
    others = {buffer.instruction for buffer in fewer}
    alone = [b for b in more if partner(b.instruction) not in others]
    shown = max(alone or more, key=lambda buffer: buffer.bytes)
    return LiveChange(
        shape=format_shape(shown.shape),
        kind=shown.kind,
        old_count=len(old),
        new_count=len(new),
        old_bytes=sum(b.bytes for b in old),
        new_bytes=sum(b.bytes for b in new),
        instruction=shown.instruction.name,
        source=program.provenance.location(shown.instruction),
    )


def _badness(change: LiveChange) -> tuple[object, ...]:
    source = change.source
    place = (source.file, source.line) if source is not None else ("", 0)
    return (change.old_bytes - change.new_bytes, *place, change.shape, change.kind)

"""The source line that a finding blames, with the blamed part underlined."""

from dataclasses import dataclass

from hlo_tools.hlo.location import SourceLocation
from hlo_tools.report.escape import columns, visible

_TAB_SIZE = 4
_MARGIN = 12  # columns of context kept to the left of the carets when a line is cut
_ELLIPSIS = "…"


@dataclass(frozen=True, slots=True, kw_only=True)
class Excerpt:
    """A visible source line, and the carets that go below it."""

    text: str
    carets: str


def excerpt(location: SourceLocation, line: str, width: int) -> Excerpt | None:
    """Returns the line and its carets cut to `width` columns, or `None` for a blank line.

    Columns count UTF-8 bytes, as CPython's code objects do, from which the dump has them. Without
    a column the whole statement on the line is underlined.
    """
    if not line.strip():
        return None
    start, end = _span(location, line)
    text = _shown(line)
    before = columns(_shown(line[:start]))
    marked = max(1, columns(_shown(line[:end])) - before)
    indent = len(text) - len(text.lstrip(" "))
    text, before = text[indent:], max(0, before - indent)
    if columns(text) > width:
        text, before = _cut(text, before, width)
        marked = max(1, min(marked, width - before))
    return Excerpt(text=text, carets=" " * before + "^" * marked)


def character_column(line: str, column: int) -> int:
    """Returns the 1-based column in characters of a 1-based column in UTF-8 bytes."""
    if line.isascii():
        return column
    prefix = line.encode("utf-8", "surrogatepass")[: column - 1]
    return len(prefix.decode("utf-8", "ignore")) + 1


def _span(location: SourceLocation, line: str) -> tuple[int, int]:
    """Returns the blamed characters of the line, as indices; at least one, all inside the line."""
    stop = len(line.rstrip())
    if location.column is None:
        return len(line) - len(line.lstrip()), stop
    start = min(character_column(line, location.column) - 1, stop - 1)
    continues = location.end_line is not None and location.end_line > location.line
    if continues:
        end = stop
    elif location.end_column is None:
        end = start + 1
    else:
        end = character_column(line, location.end_column) - 1
    return start, max(start + 1, min(end, stop))


def _shown(text: str) -> str:
    """Returns `text` visible, tabs drawn as spaces."""
    return visible(text.expandtabs(_TAB_SIZE))


def _cut(text: str, before: int, width: int) -> tuple[str, int]:
    """Cuts a long line to a window of `width` columns in which column `before` lies."""
    skip = max(0, before - _MARGIN) if before > width // 2 else 0
    kept: list[str] = []
    position = used = dropped = 0
    room = width - 1 - (1 if skip else 0)
    for char in text:
        size = columns(char)
        if position < skip:
            dropped = position + size
        elif used + size <= room:
            kept.append(char)
            used += size
        else:
            kept.append(_ELLIPSIS)
            break
        position += size
    shift = dropped - 1 if skip else 0
    return (_ELLIPSIS if skip else "") + "".join(kept), before - shift

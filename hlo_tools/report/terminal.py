"""What reports for a terminal are put together from: colour, hung lines, excerpts of source."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from hlo_tools.hlo.location import SourceLocation
from hlo_tools.report.escape import defuse, wrap
from hlo_tools.report.excerpt import excerpt
from hlo_tools.report.view import ReportOptions

MIN_WIDTH = 40

# Select Graphic Rendition parameters (ECMA-48, 8.3.117).
BOLD, DIM, RED, GREEN, YELLOW, CYAN = "1", "2", "1;31", "1;32", "1;33", "1;36"


def paragraph(lines: Iterable[str]) -> str:
    """Joins lines and sets an empty one below them; nothing for no lines."""
    text = "".join(f"{defuse(line)}\n" for line in lines)
    return text + "\n" if text else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Painter:
    """Colours visible text, or leaves it as it is."""

    enabled: bool

    def __call__(self, style: str, text: str) -> str:
        """Returns the text in a style, one of the parameters above; as it is without one."""
        return f"\x1b[{style}m{text}\x1b[0m" if self.enabled and text and style else text


def source_excerpt(
    source: SourceLocation | None,
    options: ReportOptions,
    *,
    width: int,
    paint: Painter,
    color: str,
) -> Iterator[str]:
    """Yields the source line of a place with carets below it, where it can be read."""
    if source is None:
        return
    line = options.source_line(source)
    if line is None:
        return
    number = str(source.line)
    shown_line = excerpt(source, line, width - len(number) - 5)
    if shown_line is None:
        return
    bar = paint(DIM, "|")
    yield f"  {paint(DIM, number)} {bar} {shown_line.text}"
    yield f"  {' ' * len(number)} {bar} {paint(color, shown_line.carets)}"


def labelled(label: str, text: str, width: int, paint: Painter) -> Iterator[str]:
    """Yields `  label: text` with the lines after the first hung below the text."""
    lines = wrap(text, width - 8)
    yield "  " + paint(DIM, f"{label + ':':<6}") + lines[0]
    for line in lines[1:]:
        yield " " * 8 + line

"""Making text that comes from a dump harmless in each place where a report puts it."""

import re
import unicodedata

# Characters that draw nothing although `str.isprintable` accepts them: the Default_Ignorable
# code points of Unicode (DerivedCoreProperties.txt) outside the category Cf, and the blank
# Braille pattern.
_INVISIBLE = (
    "\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180d\u180f\u2800\u3164\ufe00-\ufe0f\uffa0"
    "\U000e0100-\U000e01ef"
)
_SUSPECT = re.compile(f"[^\\x20-\\x7e\\xa1-\\xac\\xae-\\u02ff]|[{_INVISIBLE}]")
_NEVER_SHOWN = re.compile(f"[{_INVISIBLE}]")
# Before the combining marks, at U+0300, each printable character takes one column.
_UNEVEN = re.compile("[^\\x00-\\u02ff]")


def visible(text: str) -> str:
    r"""Returns `text` with every character that is not plainly visible spelled as an escape.

    Control characters, line and paragraph separators, bidirectional and zero-width characters,
    lone surrogates and unassigned code points become `\x1b`, `\u202e` or `\U000e0041`. The result
    is one line that a terminal shows as it is and that XML 1.0 may hold.
    """
    if text.isascii() and text.isprintable():
        return text
    return _SUSPECT.sub(_escape_suspect, text)


def _escape_suspect(match: re.Match[str]) -> str:
    char = match[0]
    if char.isprintable() and not _NEVER_SHOWN.match(char):
        return char
    if unicodedata.category(char) == "Zs":  # spaces take up room, so they are seen
        return char
    code = ord(char)
    if code <= 0xFF:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def defuse(line: str) -> str:
    r"""Returns one line of output that a GitHub Actions runner does not take for a command.

    The runner obeys `::name` at the start of a line, blanks before it included, and the older
    `##[name]` anywhere in it (`ActionCommand.cs` in actions/runner). A backslash breaks both.
    """
    if "##[" in line:
        line = line.replace("##[", "##\\[")
    stripped = line.lstrip()
    if stripped.startswith("::"):
        line = line[: len(line) - len(stripped)] + "\\" + stripped
    return line


def defuse_json(text: str) -> str:
    r"""Returns JSON of the same value without the `##[` that a runner would obey.

    Outside strings JSON has no `#`, and inside them `\u005b` is a bracket.
    """
    return text.replace("##[", "##\\u005b")


def workflow_data(text: str) -> str:
    """Returns `text` escaped as the message of a GitHub workflow command; newlines survive."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def workflow_property(text: str) -> str:
    """Returns `text` escaped as a property value of a GitHub workflow command."""
    return workflow_data(text).replace(":", "%3A").replace(",", "%2C")


def xml(text: str) -> str:
    """Returns `text` visible, in ASCII that is safe in XML content and in quoted attributes."""
    shown = visible(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    shown = shown.replace('"', "&quot;").replace("##[", "##&#91;")
    return shown.encode("ascii", "xmlcharrefreplace").decode("ascii")


def columns(text: str) -> int:
    """Returns the number of terminal columns that visible `text` takes."""
    if not _UNEVEN.search(text):
        return len(text)
    width = 0
    for char in text:
        if not unicodedata.combining(char):
            width += 2 if unicodedata.east_asian_width(char) in "WF" else 1
    return width


def wrap(text: str, width: int) -> list[str]:
    """Breaks visible `text` at spaces into lines of at most `width` columns.

    A word that is wider than that stands on a line of its own, whole, so that a name can still be
    searched for.
    """
    if _UNEVEN.search(text):
        return _wrap_uneven(text, width)
    lines = []
    start = 0
    while len(text) - start > width:
        end = text.rfind(" ", start, start + width + 1)
        if end <= start:
            end = text.find(" ", start + width)
            if end < 0:
                break
        lines.append(text[start:end])
        start = end + 1
    lines.append(text[start:])
    return lines


def _wrap_uneven(text: str, width: int) -> list[str]:
    lines: list[str] = []
    words: list[str] = []
    used = 0
    for word in text.split(" "):
        size = columns(word)
        if words and used + 1 + size > width:
            lines.append(" ".join(words))
            words, used = [], 0
        used += size + bool(words)
        words.append(word)
    return [*lines, " ".join(words)]

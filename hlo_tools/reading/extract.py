"""Finds the HLO modules in a text: whole dumps, several in one file, inside logs, headless ones.

Nothing here looks at every line: the text may be 100 MB, and is searched for the few places that
matter.
"""

import functools
import re
from collections.abc import Iterator
from dataclasses import dataclass

from hlo_tools.errors import InputError

MAX_MODULES = 10_000

# A line of a log does not start with more than this before the text it reports.
_MAX_PREFIX = 512
# Text without a `HloModule` line is taken for HLO only when that shows early.
_HEADLESS_CHARACTERS = 1 << 20

_KEYWORD = "HloModule"
_HEADER = re.compile(r"HloModule\s++[^\s,{]++[ \t]*+(?:[,{\n]|//|/\*|\Z)")
_STARTS_WITH_KEYWORD = re.compile(r"\s*+HloModule\b")
# XLA's own tests put several modules into one file, with this between them.
_SEPARATOR = "\n// -----"

# Repetitions are possessive (`*+`) or follow a look at the end of the line, so that no line,
# however long, costs more than a few passes over it.
_NAME = r"%?[a-zA-Z_][\w.<>\-]*+"
_TYPE = r"(?:pred|token|opaque|bf16|[suc]\d+|f\d\w*)\["
_OPENS_BLOCK = r"(?=[^\n]*\{[ \t]*+(?://[^\n]*+)?(?:\n|\Z))"
_LINE_END = r"[ \t]*+(?://[^\n]*+)?(?:\n|\Z)"
_COMPUTATION = rf"{_OPENS_BLOCK}(?:ENTRY[ \t]++)?{_NAME}[ \t]*+(?:\([^\n]*->[^\n]*|\{{)"
_INSTRUCTION = (
    rf"(?:ROOT[ \t]++)?{_NAME}[ \t]*+=[ \t]*+"
    rf"(?:{_TYPE}[\d,<=?]*+\](?:\{{[^\n{{}}]*+\}})?[ \t]++[a-z][a-z\-]*+\("
    rf"|\(++[ \t]*+(?:/\*[^\n*]*+\*/)?{_TYPE})"
)
_BLANK_LINES = r"(?:[ \t]*+(?://[^\n]*+)?\n)*+"

_HEADLESS = re.compile(
    rf"^[ \t]*+(?:{_INSTRUCTION}|{_OPENS_BLOCK}(?:ENTRY[ \t]++{_NAME}"
    rf"|{_NAME}[ \t]*+\([^\n]*\)[ \t]*->[ \t]*(?:\(|{_TYPE})"
    rf"|{_NAME}[ \t]*+\{{{_LINE_END}{_BLANK_LINES}[ \t]*+{_INSTRUCTION}))",
    re.MULTILINE,
)
# What may follow a header: source tables, a computation, a comment, or the end.
_BODY = re.compile(rf"FileNames\b|FunctionNames\b|//|/\*|{_COMPUTATION}|[ \t]*+\Z")
_CLOSING = re.compile(r"\}(?:, [a-z_]+=[^\n]*+)?" + _LINE_END)
# After the closing brace of a computation: another one, or one that is cut off in its first line.
_MORE = re.compile(
    rf"{_BLANK_LINES}[ \t]*+(?:\Z|/\*|{_COMPUTATION}"
    rf"|(?:ENTRY[ \t]*+)?(?:{_NAME})?[ \t]*+(?:\([^\n]*+)?\Z)"
)
_DIGITS = re.compile(r"\d+")
_FIRST_LINES = re.compile(r"[^\n]*\n|[^\n]+\Z")
_FIRST_LINES_LOOKED_AT = 8

# What may stand before `HloModule` on its line: the prefix of a log line or an opening quote.
_LOG_PREFIX_ENDS = (" ", "\t", "]", ">", "|", ":")
_OPENING_QUOTES = ('"""', "'''", '"(')


@dataclass(frozen=True, slots=True, kw_only=True)
class _Span:
    """Where one module stands in the text.

    Attributes:
      line: 1-based line of `start`.
      prefix: matches what every line of the module starts with in a log, where that is so.
    """

    start: int
    end: int
    line: int
    prefix: re.Pattern[str] | None


def extract_modules(text: str, *, path: str) -> Iterator[tuple[str, int]]:
    r"""Yields the text of each module and the 1-based line on which it starts.

    Lines of the yielded text correspond to lines of the input one to one. The whole text is let
    go of before the last module is yielded, so a caller that does not hold it either has one copy
    in memory where there is one module.

    Args:
      text: with `\n` line ends only.
      path: named in errors.

    Raises:
      InputError: more than `MAX_MODULES` modules.
    """
    spans = _find_spans(text, path)
    last = spans.pop() if spans else None
    for span in spans:
        yield _cut(text, span), span.line
    if last is not None:
        piece = _cut(text, last)
        del text
        yield piece, last.line


def _cut(text: str, span: _Span) -> str:
    piece = text[span.start : span.end]
    if span.prefix is None:
        return piece
    # Foreign lines between those of the module become blank, so that line numbers stay right.
    lines = []
    for line in piece.split("\n"):
        found = span.prefix.match(line)
        lines.append(line[found.end() :] if found else "")
    piece = "\n".join(lines)
    return piece[: _module_end(piece, 0, len(piece))]


def _find_spans(text: str, path: str) -> list[_Span]:
    headers = list(_find_headers(text, path))
    if not headers:
        keyword = _STARTS_WITH_KEYWORD.match(text)
        if keyword is None:
            return list(_find_headless(text, path))
        start = keyword.end() - len(_KEYWORD)
        line = text.count("\n", 0, start) + 1
        return [_Span(start=start, end=len(text), line=line, prefix=None)]

    spans = []
    line, counted = 1, 0
    for index, (start, prefix) in enumerate(headers):
        line += text.count("\n", counted, start)
        counted = start
        end = headers[index + 1][0] if index + 1 < len(headers) else len(text)
        if index + 1 < len(headers):
            end = text.rfind("\n", start, end) + 1
        separator = text.find(_SEPARATOR, start, end)
        if separator >= 0:
            end = separator + 1
        if prefix is None:
            end = _module_end(text, start, end)
        else:
            start = text.rfind("\n", 0, start) + 1
        spans.append(_Span(start=start, end=end, line=line, prefix=prefix))
    return spans


def _find_headers(text: str, path: str) -> Iterator[tuple[int, re.Pattern[str] | None]]:
    """Yields where `HloModule` opens a module, and the prefix of the lines of that module."""
    at = seen = count = 0
    while (at := text.find(_KEYWORD, at)) >= 0:
        comment_end = _enclosing_comment_end(text, seen, at)
        if comment_end is not None:
            at = comment_end
            continue
        seen = at
        line_start = text.rfind("\n", max(0, at - _MAX_PREFIX), at) + 1
        if line_start == 0 and at > _MAX_PREFIX:
            at = text.find("\n", at)  # too far into its line to be a header
            if at < 0:
                return
            continue
        found, prefix = _header_at(text, line_start, at)
        if found:
            count += 1
            if count > MAX_MODULES:
                raise InputError(f"more than {MAX_MODULES} modules in one input", path=path)
            yield at, prefix
        at += len(_KEYWORD)


def _enclosing_comment_end(text: str, seen: int, at: int) -> int | None:
    """The end of the block comment, begun on a line of its own, that `at` is inside of."""
    start = text.rfind("\n/*", seen, at)
    if start < 0:
        if seen > 0 or not text.startswith("/*"):
            return None
        start = 0
    if text.find("*/", start, at) >= 0:
        return None
    end = text.find("*/", at)
    return len(text) if end < 0 else end + 2


def _header_at(text: str, line_start: int, at: int) -> tuple[bool, re.Pattern[str] | None]:
    """Whether the keyword at `at` opens a module, and the prefix of that module's lines."""
    if _HEADER.match(text, at) is None:
        return False, None
    before = text[line_start:at]
    if not before or before.isspace():
        return True, None
    if before.lstrip().startswith(("//", "#")):
        return False, None
    quoted = before.endswith(_OPENING_QUOTES)
    if not quoted and ('"' in before or not before.endswith(_LOG_PREFIX_ENDS)):
        return False, None
    # Words before `HloModule` may be prose: the line after it decides.
    prefix = _prefix_pattern(_DIGITS.sub("0", before))
    body = text.find("\n", at)
    at = len(text) if body < 0 else body + 1
    prefixed = False
    for _ in range(_FIRST_LINES_LOOKED_AT):
        line = _FIRST_LINES.match(text, at)
        if line is None:
            break
        found = prefix.match(text, at, line.end())
        prefixed = found is not None
        at = found.end() if found else at
        if text[at : line.end()].strip():
            break
        at = line.end()
    return _BODY.match(text, at) is not None, prefix if prefixed else None


@functools.lru_cache(maxsize=64)
def _prefix_pattern(prefix: str) -> re.Pattern[str]:
    """Matches the prefixes of one log: numbers and spaces vary between lines, words do not."""
    words = re.escape(prefix.rstrip())
    words = re.sub(r"(?:\\[ \t])+", lambda _: r"[ \t]+", words).replace("0", r"\d+")
    return re.compile(words + rf"[ \t]{{0,{len(prefix) - len(prefix.rstrip())}}}")


def _find_headless(text: str, path: str) -> Iterator[_Span]:
    """Spans of HLO that has no `HloModule` line."""
    start, line, counted, count = 0, 1, 0, 0
    while start < len(text):
        found = _HEADLESS.search(text, start, start + _HEADLESS_CHARACTERS)
        if found is None:
            return
        separator = text.find(_SEPARATOR, found.start())
        end = len(text) if separator < 0 else separator + 1
        count += 1
        if count > MAX_MODULES:
            raise InputError(f"more than {MAX_MODULES} modules in one input", path=path)
        line += text.count("\n", counted, found.start())
        counted = found.start()
        yield _Span(start=counted, end=_module_end(text, counted, end), line=line, prefix=None)
        start = end


def _module_end(text: str, start: int, end: int) -> int:
    """Where the module that starts at `start` ends, at `end` at the latest.

    XLA prints the entry computation last. After it, and after any computation where there is no
    entry, what is neither a computation nor a comment belongs to the log around the module.
    """
    at = text.rfind("\nENTRY ", start, end)
    if at < 0:
        at = start
    while (at := text.find("\n}", at, end)) >= 0:
        closing = _CLOSING.match(text, at + 1, end)
        if closing is None:
            at += 2
            continue
        at = closing.end()
        if _MORE.match(text, at, end) is None:
            return at
    return end

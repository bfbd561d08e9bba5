"""The lexical forms of HLO text (`xla/hlo/parser/hlo_lexer.cc`), as compiled expressions.

One expression reads a whole instruction line up to its attributes, which are skipped over; that
it needs no look at the single characters of an attribute list is what makes the reader fast.

Every repetition here is possessive or bounded, and every scan ends at the first thing that cannot
belong to what it looks for, so that hostile text takes time in proportion to its length.
"""

import re

# Sets of single characters, spelled out: a class such as `\s` inside one makes `re` try its parts
# one by one for each character, at a quarter of the speed.
NAME = r"[^ \t\n\r\f\v=(),{}\[\]\"%]++"
"""A name as XLA prints them: dots, dashes, `<>` and whatever else is no punctuation."""

_OPCODE = r"[A-Za-z][A-Za-z0-9_\-]*+"
_ARRAY = r"[^ \t\n\r\f\v(\[][^ \t\n\r\f\v\[]*+\[[^ \t\n\r\f\v]*+"

INSTRUCTION = re.compile(
    r"^[ \t]*+(ROOT )?%?(" + NAME + r") = "
    r"(" + _ARRAY + r"|\(.*?\)(?= " + _OPCODE + r"\()) "
    r"(" + _OPCODE + r")"
    r"\(((?:[^()\n\"]++|\((?:[^()\n\"]++|\((?:[^()\n\"]++|\([^()\n\"]*+\))*+\))*+\))*+)\)"
    r".*\n?",
    re.MULTILINE,
)
"""Groups: ROOT, name, shape, opcode, arguments. Attributes follow the arguments' parenthesis.

Argument brackets nest at most four deep here; what nests deeper, spans lines or holds strings
begins with `INSTRUCTION_HEAD`."""

INSTRUCTION_HEAD = re.compile(
    r"[ \t]*+(ROOT\s)?\s*+%?(" + NAME + r")\s*+=\s*+"
    r"(?:(" + _ARRAY + r"|\((?:[^=\"]|/\*index=)*?\)(?=\s++" + _OPCODE + r"\())\s++)?"
    r"(" + _OPCODE + r")\("
)
"""Where any instruction begins, up to the parenthesis of its arguments.

May span lines, and may lack the shape: XLA's parser infers it, people leave it out."""

MODULE = re.compile(r"[ \t]*+HloModule[ \t]++(" + NAME + r")[ \t]*+")
"""The beginning of a module; group 1 is its name, attributes follow."""

HEADER_LINE = re.compile(r"(ENTRY\s++)?%?(" + NAME + r")\s*+(?:\(.*\)\s*+->.*)?\{$")
"""The header of a computation, stripped, groups: ENTRY, name.

`ENTRY %main (p: f32[2]) -> f32[2] {`, or shorter `ENTRY main {`."""

NEXT_COMPUTATION = re.compile(r"\}\n\n(ENTRY )?%(" + NAME + r") \(.*\) -> .*\{\n")
"""What XLA prints between the last instruction of one computation and the first of the next."""

HEADER = re.compile(r"[ \t]*+(ENTRY\s++)?%?(" + NAME + r")\s*+")
"""The beginning of a header that may be broken over lines; groups as in `HEADER_LINE`."""

HEADER_RESULT = re.compile(
    r"\s*+->(?:[^={}/]++|/\*index=\d++\*/|\{[^={}\n]*+\})*+\{[ \t]*+$", re.MULTILINE
)
"""The second half of a computation's signature, from the arrow to the brace that opens the body."""

TABLES = ("FileNames", "FunctionNames", "FileLocations", "StackFrames")
TABLE_ROW = re.compile(r'\d++ ["{]')

OPERAND = re.compile(r"%(" + NAME + ")")

STRING = r'"(?:[^"\\\n]++|\\[^\n])*+"?'
"""A string; one that is not closed ends with its line, so that a broken line harms no other."""

_COMMENT_START = re.compile(r"//|/\*(?!index=\d)")
_COMMENT_TOKEN = re.compile(STRING + r"|//[^\n]*+|/\*(?!index=\d)")
_INDEX_COMMENT = re.compile(r"/\*index=\d++\*/")
_NOT_NEWLINE = re.compile(r"[^\n]++")
_LIST_TOKEN = re.compile(STRING + r"|[{}()\[\]\n]")
_ARGUMENT_TOKEN = re.compile(STRING + r"|/\*index=\d++\*/|[()=]")
_REST_IS_BLANK = re.compile(r"[ \t]*+$", re.MULTILINE)
_BLANKS = re.compile(r"\s*+")


def blank_comments(text: str) -> str:
    """The text with comments turned into spaces, every offset and line number as before.

    Comments of the form `/*index=5*/`, which XLA itself prints, stay: the readers of shapes and
    operands skip them.
    """
    pieces: list[str] = []
    kept = 0
    closable = True
    candidate = _COMMENT_START.search(text)
    while candidate:
        # A `//` inside a string is no comment: read from the line's start, where no string is open.
        position = max(text.rfind("\n", 0, candidate.start()) + 1, kept)
        line_end = text.find("\n", candidate.start())
        line_end = len(text) if line_end < 0 else line_end
        while token := _COMMENT_TOKEN.search(text, position, line_end):
            start, position = token.span()
            if text[start] == '"':
                continue
            if text[start + 1] == "*":
                close = text.find("*/", position) if closable else -1
                if close < 0:
                    closable = False
                    continue
                position = close + 2
                line_end = max(line_end, position)
            pieces.append(text[kept:start])
            pieces.append(_NOT_NEWLINE.sub(lambda m: " " * len(m[0]), text[start:position]))
            kept = position
        candidate = _COMMENT_START.search(text, max(position, line_end))
    if not pieces:
        return text
    pieces.append(text[kept:])
    return "".join(pieces)


def closing_parenthesis(text: str, start: int, end: int) -> int:
    """The offset of the parenthesis that closes the one just before `start`, or -1.

    Strings are skipped; the text may span lines. An `=` ends the search: neither arguments nor
    signatures hold one, but the next instruction does.
    """
    depth = 1
    for token in _ARGUMENT_TOKEN.finditer(text, start, end):
        char = token[0]
        if char == "(":
            depth += 1
        elif char == ")":
            depth -= 1
            if depth == 0:
                return token.start()
        elif char == "=":
            return -1
    return -1


def wrapped_header_end(text: str, head: re.Match[str], end: int) -> int:
    """The offset behind the brace that opens the computation which `head` begins, or -1."""
    position = head.end()
    following = text[position : position + 1]
    if following == "{":
        return position + 1 if _REST_IS_BLANK.match(text, position + 1, end) else -1
    if following != "(":
        return -1
    close = closing_parenthesis(text, position + 1, end)
    result = HEADER_RESULT.match(text, close + 1, end) if close >= 0 else None
    return result.end() if result else -1


def ends_with_line(text: str, start: int, line_end: int, end: int) -> bool:
    """Whether the attribute list at `start` ends where its line does: a quick look, nearly sure.

    Deceived only by strings that hold just the braces which the list lacks.
    """
    line = text[start:line_end].rstrip()
    if line.count("{") != line.count("}") or line.endswith((",", "[", "(")):
        return False
    return not text[line_end : min(end, line_end + 80)].lstrip().startswith(",")


def attribute_list_end(text: str, start: int, end: int) -> int:
    """Where the attribute list that begins at `start` ends: a line end, or -1 if past `end`.

    Lines go on while brackets are open, and where a comma stands on either side of the line end.
    Where the next instruction begins before the brackets are closed, the list is broken: -1.
    """
    depth = 0
    position = start
    while token := _LIST_TOKEN.search(text, position, end):
        position = token.end()
        char = token[0]
        if char in "{([":
            depth += 1
        elif char in "})]":
            depth -= 1
        elif char == "\n" and depth > 0:
            if INSTRUCTION_HEAD.match(text, position, end):
                return -1
        elif char == "\n":
            following = _next_word(text, position, end)
            if following >= end:
                return token.start()
            has_comma = _ends_in_comma(text, start, token.start()) or text[following] == ","
            if not has_comma or INSTRUCTION_HEAD.match(text, following, end):
                return token.start()
            position = following
    return end if depth <= 0 else -1


def _next_word(text: str, position: int, end: int) -> int:
    blanks = _BLANKS.match(text, position, end)
    return blanks.end() if blanks else position


def _ends_in_comma(text: str, start: int, line_end: int) -> bool:
    return text[max(start, line_end - 80) : line_end].rstrip().endswith(",")


def split_operands(arguments: str) -> list[str]:
    """The operand names in an argument list, with or without `%` and with or without shapes."""
    if "/*" in arguments:
        arguments = _INDEX_COMMENT.sub(" ", arguments)
    if "%" in arguments:
        return OPERAND.findall(arguments)
    names: list[str] = []
    depth, start = 0, 0
    for position, char in enumerate(arguments + ","):
        if char in "([{":
            depth += 1
        elif char in ")]}":
            depth -= 1
        elif char == "," and depth == 0:
            words = arguments[start:position].split()
            if words:
                names.append(words[-1])
            start = position + 1
    return names

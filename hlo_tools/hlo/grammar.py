"""The lexical forms of HLO text (`xla/hlo/parser/hlo_lexer.cc`), as compiled expressions.

One expression reads a whole instruction line up to its attributes, which are skipped over; that
it needs no look at the single characters of an attribute list is what makes the reader fast.
"""

import re

NAME = r"[^\s=(),{}\[\]\"%]++"
"""A name as XLA prints them: dots, dashes, `<>` and whatever else is no punctuation."""

INSTRUCTION = re.compile(
    r"^[ \t]*+(ROOT\s)?[ \t]*+%?(" + NAME + r") = "
    r"([^\s(]\S*+|\(.*?\)(?= [A-Za-z][\w\-]*+\())[ ]"
    r"([A-Za-z][\w\-]*+)"
    r"\(((?:[^()\n\"]++|\((?:[^()\n\"]++|\((?:[^()\n\"]++|\([^()\n\"]*+\))*+\))*+\))*+)\)"
    r"(.*)\n?",
    re.MULTILINE,
)
"""Groups: ROOT, name, shape, opcode, arguments, attributes. Argument brackets nest at most four
deep here; what nests deeper, spans lines or holds strings is read by `instruction_spans`."""

INSTRUCTION_HEAD = re.compile(
    r"[ \t]*+(ROOT\s)?\s*+%?(" + NAME + r")\s*+=\s*+"
    r"([^\s(]\S*+|\((?:[^=\"]|/\*index=)*?\)(?=\s+[A-Za-z][\w\-]*+\())\s++"
    r"([A-Za-z][\w\-]*+)\("
)
"""Where any instruction begins, up to the parenthesis of its arguments."""

_HEADER = re.compile(r"(ENTRY\s++)?%?(" + NAME + r")\s*+")
MODULE = re.compile(r"[ \t]*+HloModule[ \t]++(" + NAME + r")[ \t]*+(,.*)?$", re.MULTILINE)
"""Groups: name, attributes."""

TABLES = ("FileNames", "FunctionNames", "FileLocations", "StackFrames")

OPERAND = re.compile(r"%(" + NAME + ")")

_STRING_OR_COMMENT = re.compile(r'"(?:[^"\\\n]++|\\.)*+"|//[^\n]*|/\*.*?\*/', re.DOTALL)
_COMMENT_START = re.compile(r"//|/\*(?!index=\d)")
_STRING_OR_BRACE = re.compile(r'"(?:[^"\\\n]++|\\.)*+"|[{}()\n]')
_NOT_NEWLINE = re.compile(r"[^\n]+")
_STRING_OR_BRACKET = re.compile(r'"(?:[^"\\\n]++|\\.)*+"|[()]')


def blank_comments(text: str) -> str:
    """The text with comments turned into spaces, every offset and line number as before.

    Comments of the form `/*index=5*/`, which XLA itself prints, stay: the readers of shapes and
    operands skip them.
    """
    if not _COMMENT_START.search(text):
        return text
    pieces: list[str] = []
    kept = 0
    candidate = _COMMENT_START.search(text)
    while candidate:
        # A `//` inside a string is no comment: read from the line's start, where no string is open.
        line_start = max(text.rfind("\n", 0, candidate.start()) + 1, kept)
        line_end = text.find("\n", candidate.start())
        line_end = len(text) if line_end < 0 else line_end
        position = line_start
        while token := _STRING_OR_COMMENT.search(text, position):
            if token.start() >= line_end:
                break
            position = token.end()
            if token[0][0] != "/" or _is_index(token[0]):
                continue
            pieces.append(text[kept : token.start()])
            pieces.append(_NOT_NEWLINE.sub(lambda m: " " * len(m[0]), token[0]))
            kept = token.end()
        candidate = _COMMENT_START.search(text, max(position, line_end))
    pieces.append(text[kept:])
    return "".join(pieces)


def _is_index(token: str) -> bool:
    return token.startswith("/*index=")


def closing_parenthesis(text: str, start: int, end: int) -> int:
    """The offset of the parenthesis that closes the one just before `start`, or -1.

    Strings are skipped; the text may span lines.
    """
    depth = 1
    for token in _STRING_OR_BRACKET.finditer(text, start, end):
        char = token[0]
        if char == "(":
            depth += 1
        elif char == ")":
            depth -= 1
            if depth == 0:
                return token.start()
    return -1


def computation_header(line: str) -> tuple[str, bool] | None:
    """The name that a computation's header gives, and whether it is the entry; `None` if no header.

    `line` is stripped: `ENTRY %main (p: f32[2]) -> f32[2] {`, or shorter `ENTRY main {`.
    """
    if not line.endswith("{"):
        return None
    head = _HEADER.match(line)
    if head is None:
        return None
    signature = line[head.end() : -1].strip()
    if signature and not (signature.startswith("(") and "->" in signature):
        return None
    return head[2], bool(head[1])


def continued_line_end(text: str, start: int) -> int:
    """Where the attribute list that begins at `start` ends: the first line end outside brackets."""
    depth = 0
    for token in _STRING_OR_BRACE.finditer(text, start):
        char = token[0]
        if char in "{(":
            depth += 1
        elif char in "})":
            depth -= 1
        elif char == "\n" and depth <= 0:
            return token.start()
    return len(text)


def split_operands(arguments: str) -> list[str]:
    """The operand names in an argument list, with or without `%` and with or without shapes."""
    if "/*" in arguments:
        arguments = _STRING_OR_COMMENT.sub(" ", arguments)
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

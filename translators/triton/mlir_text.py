"""Triton IR as text, made readable for jaxlib's MLIR.

jaxlib's Triton dialect lags behind Triton's: some ops it does not know, or knows without their
custom syntax. Those are rewritten in MLIR's generic syntax under a dialect that nobody registered.
"""

import re

_PREFIX = "kept."
_NAME = r"(?:%[\w$.#-]+)"
_RESULT = rf"^(?P<indent>\s*)(?:(?P<result>{_NAME}) = )?"
_LOCATION = r"(?P<location> loc\(.*\))?$"
_ASSUME = re.compile(
    _RESULT + rf"llvm\.intr\.assume (?P<operands>{_NAME}) : (?P<type>\w+)" + _LOCATION, re.MULTILINE
)
_CAT = re.compile(
    _RESULT
    + rf"tt\.cat (?P<operands>{_NAME}, {_NAME}) : (?P<type>\S+) -> (?P<into>[^\s]+)"
    + _LOCATION,
    re.MULTILINE,
)
_BARRIER = re.compile(_RESULT + r"ttg\.barrier (?P<spaces>[\w|]+)" + _LOCATION, re.MULTILINE)

# What a cache should do with an access changes no value, and each version writes it another way.
_CACHING = re.compile(
    r"cachePolicy = #tt\.cache_policy<[^>\n]*>(?:, )?|"
    r" (?:cacheModifier|evictionPolicy) = \w+(?=[ :])"
)


def readable(text: str) -> str:
    """The same module in syntax that jaxlib's MLIR reads."""
    text = _CACHING.sub("", text)
    text = _ASSUME.sub(_generic_assume, text)
    text = _CAT.sub(_generic_cat, text)
    return _BARRIER.sub(_generic_barrier, text)


def plain_name(name: str) -> str:
    """An op's name without what `readable` put before it."""
    return name.removeprefix(_PREFIX)


def _generic_assume(match: re.Match[str]) -> str:
    return _generic(match, "llvm.intr.assume", match["operands"], f"({match['type']}) -> ()")


def _generic_cat(match: re.Match[str]) -> str:
    types = f"({match['type']}, {match['type']}) -> {match['into']}"
    return _generic(match, "tt.cat", match["operands"], types)


def _generic_barrier(match: re.Match[str]) -> str:
    return _generic(match, "ttg.barrier", "", "() -> ()")


def _generic(match: re.Match[str], name: str, operands: str, types: str) -> str:
    result = f"{match['result']} = " if match["result"] else ""
    place = match["location"] or ""
    return f'{match["indent"]}{result}"{_PREFIX}{name}"({operands}) : {types}{place}'

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
_ATOMIC = rf"(?P<sem>\w+), (?P<scope>\w+), (?P<operands>{_NAME}(?:, {_NAME})*)"
_ATOMIC_LOAD = re.compile(
    _RESULT + rf"tt\.atomic_load {_ATOMIC} : (?P<types>\(.+\) -> \S+)" + _LOCATION, re.MULTILINE
)
_ATOMIC_STORE = re.compile(
    _RESULT + rf"tt\.atomic_store {_ATOMIC} : (?P<type>\S+)" + _LOCATION, re.MULTILINE
)
_ATOMIC_POLL = re.compile(
    _RESULT
    + rf"tt\.atomic_poll {_ATOMIC}(?: timeout (?P<timeout>{_NAME}))?"
    + r" : (?P<types>\S+, \S+) -> (?P<into>\S+)"
    + _LOCATION,
    re.MULTILINE,
)
# What a pointer type, or a tensor of pointers, points to.
_POINTERS = re.compile(r"(?P<shape>tensor<[\dx]+x)?!tt\.ptr<(?P<pointee>.+?)(?:, \d+)?>(?P<end>>?)")
_BARRIER = re.compile(_RESULT + r"ttg\.barrier (?P<spaces>[\w|]+)" + _LOCATION, re.MULTILINE)

# Whether a kernel may start before the one before it has ended changes nothing within it.
_DEPENDENCY = re.compile(
    r"^\s*tt\.grid_dependency_(?:wait|launch_dependents)" + _LOCATION, re.MULTILINE
)
# What a cache should do with an access changes no value, and each version writes it another way.
_CACHING = re.compile(
    r"cachePolicy = #tt\.cache_policy<[^>\n]*>(?:, )?|"
    r" (?:cacheModifier|evictionPolicy) = \w+(?=[ :])"
)


def readable(text: str) -> str:
    """The same module in syntax that jaxlib's MLIR reads."""
    text = _DEPENDENCY.sub("", _CACHING.sub("", text))
    text = _ASSUME.sub(_generic_assume, text)
    text = _CAT.sub(_generic_cat, text)
    text = _ATOMIC_LOAD.sub(_generic_atomic_load, text)
    text = _ATOMIC_STORE.sub(_generic_atomic_store, text)
    text = _ATOMIC_POLL.sub(_generic_atomic_poll, text)
    return _BARRIER.sub(_generic_barrier, text)


def plain_name(name: str) -> str:
    """An op's name without what `readable` put before it."""
    return name.removeprefix(_PREFIX)


def _generic_assume(match: re.Match[str]) -> str:
    return _generic(match, "llvm.intr.assume", match["operands"], f"({match['type']}) -> ()")


def _generic_cat(match: re.Match[str]) -> str:
    types = f"({match['type']}, {match['type']}) -> {match['into']}"
    return _generic(match, "tt.cat", match["operands"], types)


def _generic_atomic_load(match: re.Match[str]) -> str:
    return _generic_atomic(match, "tt.atomic_load", match["operands"], match["types"])


def _generic_atomic_store(match: re.Match[str]) -> str:
    """The syntax leaves out the types of the value and of the mask."""
    pointers = _POINTERS.fullmatch(match["type"])
    if pointers is None:
        return match[0]
    shape, end = pointers["shape"] or "", pointers["end"]
    types = [match["type"], f"{shape}{pointers['pointee']}{end}", f"{shape}i1{end}"]
    types = types[: match["operands"].count("%")]
    return _generic_atomic(
        match, "tt.atomic_store", match["operands"], f"({', '.join(types)}) -> ()"
    )


def _generic_atomic_poll(match: re.Match[str]) -> str:
    """A time to wait is a number of nanoseconds, of 64 bits."""
    operands, types = match["operands"], match["types"]
    if match["timeout"]:
        operands, types = f"{operands}, {match['timeout']}", f"{types}, i64"
    return _generic_atomic(match, "tt.atomic_poll", operands, f"({types}) -> {match['into']}")


def _generic_atomic(match: re.Match[str], name: str, operands: str, types: str) -> str:
    attributes = f'{{sem = "{match["sem"]}", scope = "{match["scope"]}"}}'
    return _generic(match, name, operands, types, attributes)


def _generic_barrier(match: re.Match[str]) -> str:
    return _generic(match, "ttg.barrier", "", "() -> ()")


def _generic(
    match: re.Match[str], name: str, operands: str, types: str, attributes: str = ""
) -> str:
    result = f"{match['result']} = " if match["result"] else ""
    place = match["location"] or ""
    given = f" {attributes}" if attributes else ""
    return f'{match["indent"]}{result}"{_PREFIX}{name}"({operands}){given} : {types}{place}'

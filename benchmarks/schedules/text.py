"""Reads what libtpu prints of its last schedule before it hides waits: `packed-bundles-post-ra`.

A file holds one kernel (a Pallas call, a fusion, another HLO instruction) or the program around
them (`TLP`). A line is a bundle, what the core issues in one cycle; an empty one is a wait for a
result that the compiler knows of, which the later `final_bundles` leave out. Registers are
allocated: `%s7993_s24` is value 7993 in register s24, `%p34_p0` a predicate, `%v9_v1` a vector.
"""

import re
from dataclasses import dataclass
from pathlib import Path

LABEL = "packed-bundles-post-ra"
BRANCH_DELAY = 4
"""Bundles after a branch that run before it takes effect, on v5e, v6e and 7x (the first bundle of a
loop or region after a branch always stands five later)."""


class ScheduleError(Exception):
    """The text is not what this reader knows; the message names the bundle."""


@dataclass(frozen=True, slots=True)
class Register:
    """A value in a register: `Register("s", 24, 7993)` for `%s7993_s24`."""

    kind: str
    number: int
    value: int


@dataclass(frozen=True, slots=True)
class Symbol:
    """The address of an allocation, plus an offset."""

    name: str
    offset: int


@dataclass(frozen=True, slots=True)
class Memory:
    """A word of scalar memory: the sum of its parts."""

    parts: tuple["Register | Symbol | int", ...]


Operand = Register | Symbol | Memory | int | str


@dataclass(frozen=True, slots=True)
class Op:
    """One operation of a bundle that is no vector operation.

    Attributes:
      name: with its modifiers, for example `sadd.s32`.
      result: the register that it sets.
      operands: without the predicate; the address for `sld`, address and value for `sst`.
      predicate: the register that decides whether it runs.
      negated: it runs where the predicate is false.
      otherwise: the register whose value the result has where it does not run.
      target: of a branch, the bundle.
      callee: of an `inlined_call`, the HLO instruction.
      number: of an operation without a result, the value that others name it by.
    """

    name: str
    result: Register | None
    operands: tuple[Operand, ...]
    predicate: Register | None = None
    negated: bool = False
    otherwise: Register | None = None
    target: int | None = None
    callee: str | None = None
    number: int | None = None


@dataclass(frozen=True, slots=True)
class Parameter:
    """An operand of a kernel: its position, the register it comes in, and its type."""

    index: int
    register: Register
    space: str
    shape: str


@dataclass(frozen=True, slots=True)
class Schedule:
    """A kernel: how many bundles, and the operations that are not vector operations.

    Attributes:
      name: the HLO instruction; `TLP` for the program.
      length: number of bundles.
      bundles: operations by bundle, for those that have any.
      parameters: of a kernel; empty for the program.
    """

    name: str
    length: int
    bundles: dict[int, tuple[Op, ...]]
    parameters: tuple[Parameter, ...]


_CALLEE = re.compile(r"inlined_call\b([^/\n]*)/\*\s*(?:%(\S+) =|(<[^>]*>))")
_GENERAL = re.compile(r"dma\.general( [^\n]*?)/\*\s*(\w+)-to-(\w+)\s*\*/")
_INDEX_COMMENT = re.compile(r"/\*index=\d+\*/")
_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
_BUNDLE = re.compile(
    r"^ *(0x[0-9a-f]+|0) +(?:[A-Z]{2})?:[ >]*\{(.*?)\} *$", re.MULTILINE | re.DOTALL
)
_REGISTER = re.compile(r"%([spv]m?)(\d+)_[spv]m?(\d+)")
_TEXT_OF_REGISTER = r"%[spv]m?\d+_[spv]m?\d+"
_PREDICATE = re.compile(rf"\((!?)({_TEXT_OF_REGISTER})(?:, *({_TEXT_OF_REGISTER}))?\)")
_SYMBOL = re.compile(r"\[#(allocation\w+)(?: \+ \$(0x[0-9a-f]+))?\]")
_MEMORY = re.compile(r"\[smem:(.*)\]$")
_TARGET = re.compile(r"target bundleno = (\d+)")
_PARAMETER = re.compile(
    rf"({_TEXT_OF_REGISTER}) = inlined_call_operand\.(<[^>]*>|\w+) \[shape: (.*?), index: (\d+)"
)
_OP = re.compile(rf"(?:({_TEXT_OF_REGISTER})|%(\d+)) = (\S+)(.*)$", re.DOTALL)


def read_schedules(directory: Path) -> dict[str, Schedule]:
    """The schedules of one program's dump, by HLO instruction; the program's own is `TLP`.

    Args:
      directory: what `--xla_jf_dump_to` named. Where the compiler scheduled an instruction more
        than once, the last time counts: names begin with the nanoseconds since 1970.

    Raises:
      ScheduleError: a file cannot be read, or there is no `TLP`.
    """
    files: dict[str, tuple[int, Path]] = {}
    for path in directory.iterdir():
        found = re.fullmatch(rf"(\d+)-(.+?)-\d+-{LABEL}\.txt", path.name)
        if found is None:
            continue
        if found[2] not in files or files[found[2]][0] <= int(found[1]):
            files[found[2]] = int(found[1]), path
    if "TLP" not in files:
        raise ScheduleError(f"{directory}: no schedule of a program")
    return {
        name: parse_schedule(name, path.read_text(encoding="utf-8", errors="replace"))
        for name, (_, path) in files.items()
    }


def parse_schedule(name: str, text: str) -> Schedule:
    """Reads one file.

    Raises:
      ScheduleError: it holds no bundles, or one that cannot be read.
    """
    text = _CALLEE.sub(lambda m: f"inlined_call@{m[2] or m[3]} {m[1]}/*", text)
    text = _GENERAL.sub(r"dma.\2_to_\3\1", text)
    text = _COMMENT.sub("", _INDEX_COMMENT.sub("", text))
    bundles: dict[int, tuple[Op, ...]] = {}
    parameters: list[Parameter] = []
    length = 0
    for found in _BUNDLE.finditer(text):
        number = int(found[1], 16)
        if number != length:
            raise ScheduleError(f"{name}: bundle {number:#x} stands where {length:#x} should")
        length += 1
        ops = []
        for part in found[2].split(";;"):
            parameter = _PARAMETER.search(part)
            if parameter is not None:
                parameters.append(
                    Parameter(
                        index=int(parameter[4]),
                        register=_register(parameter[1]),
                        space=parameter[2],
                        shape=parameter[3],
                    )
                )
                continue
            op = _op(part.strip(), f"{name}, bundle {number:#x}")
            if op is not None:
                ops.append(op)
        if ops:
            bundles[number] = tuple(ops)
    if not length:
        raise ScheduleError(f"{name}: no bundles")
    return Schedule(name, length, bundles, tuple(parameters))


def _register(text: str) -> Register:
    found = _REGISTER.fullmatch(text)
    if found is None:
        raise ScheduleError(f"`{text}` is no register")
    return Register(found[1], int(found[3]), int(found[2]))


_IGNORED = ("compiler-scheduling-barrier", "sfence", "vsettm", "vsetrngseed", "vsetiar", "scheck")
_OF_INTEREST = re.compile(r"dma\.|vsync|vwait|vtrace|vdelay|s[a-z]|p[a-z]|inlined_call@|i[a-z]|r")


def _op(text: str, where: str) -> Op | None:
    if not text or text.startswith("%v"):
        return None
    found = _OP.match(text)
    if found is None:
        raise ScheduleError(f"{where}: cannot read `{text}`")
    result = _register(found[1]) if found[1] else None
    name, rest = found[3], found[4].strip()
    if result is None and (not _OF_INTEREST.match(name) or name.startswith(_IGNORED)):
        return None
    callee = None
    if name.startswith("inlined_call@"):
        name, callee = name.split("@", 1)
    target = _TARGET.search(rest)
    rest = re.sub(r"\[(?:resolvable|thread):\$?\w+\]|\btarget .*$", "", rest, flags=re.DOTALL)
    predicate = _PREDICATE.search(rest)
    if predicate is not None:
        rest = rest[: predicate.start()] + rest[predicate.end() :]
    return Op(
        name=name,
        result=result,
        operands=_operands(name, rest.strip().strip(",").strip(), where),
        predicate=_register(predicate[2]) if predicate else None,
        negated=bool(predicate and predicate[1]),
        otherwise=_register(predicate[3]) if predicate and predicate[3] else None,
        target=int(target[1]) if target else None,
        callee=callee,
        number=int(found[2]) if found[2] else None,
    )


def _operands(name: str, text: str, where: str) -> tuple[Operand, ...]:
    if name == "sst":
        close = text.rfind("]")
        return (_operand(text[: close + 1], where), _operand(text[close + 1 :].strip(), where))
    return tuple(_operand(part.strip(), where) for part in text.split(",") if part.strip())


def _part(text: str, where: str) -> Register | Symbol | int:
    if text.startswith("#"):
        return Symbol(text[1:], 0)
    part = _operand(text, where)
    if not isinstance(part, Register | int):
        raise ScheduleError(f"{where}: cannot read the address `{text}`")
    return part


def _operand(text: str, where: str) -> Operand:
    memory = _MEMORY.match(text)
    if memory is not None:
        parts = memory[1].strip("[]").split(" + ")
        return Memory(tuple(_part(part.strip(), where) for part in parts))
    symbol = _SYMBOL.fullmatch(text)
    if symbol is not None:
        return Symbol(symbol[1], int(symbol[2], 16) if symbol[2] else 0)
    if _REGISTER.fullmatch(text):
        return _register(text)
    # `16 [#allocation3]` is a number that is added to an address in that allocation.
    number = re.fullmatch(r"\$?(-?\d+|0x[0-9a-f]+)(?: \[#\w+\])?", text)
    return int(number[1], 0) if number else text

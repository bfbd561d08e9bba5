"""Turns the scalar code of a schedule into Python, one function for each run of bundles.

Only what decides branches, transfers and waits is kept: the vector operations of a bundle take its
one cycle and nothing else. A value that is not known when the program is compiled is `Unknown`, and
deciding a branch by it is an error.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from benchmarks.schedules.text import (
    BRANCH_DELAY,
    Memory,
    Op,
    Operand,
    Register,
    Schedule,
    ScheduleError,
    Symbol,
)

_SIGN = 1 << 31
_ALL = (1 << 32) - 1


class Unknown:
    """A value that only the running program would know, and why."""

    __slots__ = ("reason",)
    __hash__ = None

    def __init__(self, reason: str) -> None:
        self.reason = reason

    def _same(self, *_: Any) -> "Unknown":
        return self

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = _same
    __and__ = __rand__ = __or__ = __ror__ = __xor__ = __rxor__ = _same
    __lshift__ = __rlshift__ = __rshift__ = __rrshift__ = _same
    __lt__ = __le__ = __gt__ = __ge__ = __eq__ = __ne__ = _same
    __invert__ = _same

    def __bool__(self) -> bool:
        raise ScheduleError(f"only the running program knows {self.reason}")


def signed(value: Any) -> Any:
    """The 32-bit integer of the same bits, as Python holds signed ones."""
    return ((value + _SIGN) & _ALL) - _SIGN


def chosen(predicate: Any, yes: Any, no: Any) -> Any:
    """`scalar_select`; unknown where the predicate is, unless both are the same."""
    if isinstance(predicate, Unknown):
        same = not isinstance(yes, Unknown) and not isinstance(no, Unknown) and yes == no
        return yes if same else predicate
    return yes if predicate else no


def both(left: Any, right: Any) -> Any:
    """`and` of predicates, false where one is, whatever the other."""
    if left is False or right is False:
        return False
    return left if isinstance(left, Unknown) else right


def either(left: Any, right: Any) -> Any:
    """`or` of predicates, true where one is, whatever the other."""
    if left is True or right is True:
        return True
    return left if isinstance(left, Unknown) else right


def opposite(value: Any) -> Any:
    """`not` of a predicate."""
    return value if isinstance(value, Unknown) else not value


_BINARY = {
    "sadd.s32": "signed({} + {})",
    "ssub.s32": "signed({} - {})",
    "smul.u32": "signed({} * {})",
    "smulhi.u32": "signed((({} & ALL) * ({} & ALL)) >> 32)",
    "sand.u32": "({} & {})",
    "sor.u32": "({} | {})",
    "sxor.u32": "({} ^ {})",
    "sshll.u32": "signed({} << {})",
    "sshra.s32": "({} >> {})",
    "sshrl.u32": "signed(({} & ALL) >> {})",
    "smin.u32": "chosen(({0} & ALL) < ({1} & ALL), {0}, {1})",
    "smax.u32": "chosen(({0} & ALL) > ({1} & ALL), {0}, {1})",
    "smin.s32": "chosen({0} < {1}, {0}, {1})",
    "smax.s32": "chosen({0} > {1}, {0}, {1})",
    "por": "either({}, {})",
    "pand": "both({}, {})",
    "pnand": "opposite(both({}, {}))",
    "pnor": "opposite(either({}, {}))",
    "pxor": "either(both({0}, opposite({1})), both(opposite({0}), {1}))",
}
_COMPARISONS = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
_MOVES = ("smov.u32", "smov.s32", "pmov")
_SAME = ("sphi", "pphi", "int_to_ptr")
_EVENTS = ("dma.", "vsync", "vwait", "inlined_call", "sbr", "shalt", "vtrace", "sst", "sdivrem")
_WITHOUT_EFFECT = ("vsyncpa", "vsyncmov", "vsyncset.done", "vsyncset.notdone")


@dataclass(frozen=True, slots=True)
class Block:
    """A run of bundles that is entered at its first and left at its end.

    Attributes:
      start: its first bundle.
      length: bundles, those that run after its branch among them.
      run: takes registers and predicates by number, scalar memory, and the machine; gives the
        bundle to go on with.
    """

    start: int
    length: int
    run: Callable[[list[Any], list[Any], Any], int]


def compile_blocks(schedule: Schedule, address: Callable[[Symbol], int]) -> dict[int, Block]:
    """The blocks of a schedule, by their first bundle.

    Args:
      schedule: what to compile.
      address: the address of a symbol.

    Raises:
      ScheduleError: an operation that matters is not known, or a register is read whose value is
        another one by then.
    """
    needed = _needed(schedule)
    branches = {
        number: op
        for number, ops in schedule.bundles.items()
        for op in ops
        if op.name.startswith("sbr")
    }
    for number, op in branches.items():
        if op.target is None:
            raise ScheduleError(f"{schedule.name}, bundle {number:#x}: a branch without a target")
    ends = {number + BRANCH_DELAY + 1 for number in branches}
    leaders = {0} | ends | {op.target for op in branches.values() if op.target is not None}
    order = sorted(leader for leader in leaders if leader < schedule.length)
    blocks = {}
    for start, end in zip(order, [*order[1:], schedule.length], strict=True):
        blocks[start] = _Writer(schedule, needed, address).block(start, end, branches)
    return blocks


def _inputs(op: Op) -> Iterator[Register]:
    for operand in op.operands:
        if isinstance(operand, Register):
            yield operand
        elif isinstance(operand, Memory):
            yield from (part for part in operand.parts if isinstance(part, Register))
    if op.predicate is not None:
        yield op.predicate
    if op.otherwise is not None:
        yield op.otherwise


def _needed(schedule: Schedule) -> set[int]:
    """The values on which branches, transfers and waits depend."""
    by_value = {op.result.value: op for ops in schedule.bundles.values() for op in ops if op.result}
    pending = [
        register.value
        for ops in schedule.bundles.values()
        for op in ops
        if op.result is None and op.name.startswith(_EVENTS)
        for register in _inputs(op)
    ]
    needed: set[int] = set()
    while pending:
        value = pending.pop()
        if value in needed:
            continue
        needed.add(value)
        if value in by_value:
            pending += [register.value for register in _inputs(by_value[value])]
    return needed


class _Writer:
    """Writes the Python of one block."""

    def __init__(
        self, schedule: Schedule, needed: set[int], address: Callable[[Symbol], int]
    ) -> None:
        self.schedule = schedule
        self.needed = needed
        self.address = address
        self.values: dict[tuple[str, int], set[int]] = {}
        self.held: dict[tuple[str, int], None] = {}
        self.read_first: dict[tuple[str, int], None] = {}
        self.where = ""

    def block(self, start: int, end: int, branches: dict[int, Op]) -> Block:
        body: list[str] = []
        after = str(end)
        for number in range(start, end):
            self.where = f"{self.schedule.name}, bundle {number:#x}"
            ops = self.schedule.bundles.get(number, ())
            body += self.bundle(ops, number - start, end)
            if number in branches:
                if end != number + BRANCH_DELAY + 1:
                    raise ScheduleError(f"{self.where}: a branch target among its delay slots")
                after = "after"
        lines = [f"{self.local(key)} = {self.place(key)}" for key in self.read_first]
        lines += body
        lines += [f"{self.place(key)} = {self.local(key)}" for key in self.held]
        lines.append(f"return {after}")
        text = "def run(S, P, machine):\n" + "".join(f"    {line}\n" for line in lines)
        scope: dict[str, Any] = dict(_SCOPE)
        exec(compile(text, f"<{self.schedule.name} {start:#x}>", "exec"), scope)
        return Block(start, end - start, scope["run"])

    def bundle(self, ops: tuple[Op, ...], offset: int, end: int) -> list[str]:
        """All of a bundle's operations read before any of them writes."""
        lines: list[str] = []
        results: list[tuple[str, Op]] = []
        unneeded: list[Op] = []
        names: list[Op] = []
        made = {op.result.value for op in ops if op.result and not op.name.startswith(_SAME)}
        for op in ops:
            if op.name.startswith(("sphi", "pphi")):
                self.rename(op)
        for op in ops:
            if op.result is not None and op.result.kind in "sp":
                if op.name.startswith(("sphi", "pphi")):
                    continue
                if op.name.startswith(_SAME) and (self.stays(op) or self.reads(op) & made):
                    names.append(op)
                elif op.result.value in self.needed:
                    results.append((self.value(op), op))
                else:
                    unneeded.append(op)
            elif op.name.startswith("sbr"):
                lines.append(f"after = {self.branch(op, end)}")
            elif op.result is None and op.name.startswith(_EVENTS):
                lines += self.event(op, offset)
        if results:
            temporaries = ", ".join(f"t{index}" for index in range(len(results)))
            lines.insert(0, f"{temporaries} = {', '.join(text for text, _ in results)}")
            for index, (_, op) in enumerate(results):
                lines.append(f"{self.define(op)} = t{index}")
        for op in unneeded:
            self.note(op)
        for op in names:
            lines += self.rename(op)
        return lines

    def reads(self, op: Op) -> set[int]:
        return {each.value for each in op.operands if isinstance(each, Register)}

    def stays(self, op: Op) -> bool:
        """Whether an operation that gives a value another name leaves it in its register."""
        assert op.result is not None
        key = (op.result.kind, op.result.number)
        sources = [each for each in op.operands if isinstance(each, Register)]
        return all((each.kind, each.number) == key for each in sources)

    def local(self, key: tuple[str, int]) -> str:
        return f"{key[0]}{key[1]}"

    def place(self, key: tuple[str, int]) -> str:
        return f"{key[0].upper()}[{key[1]}]"

    def define(self, op: Op) -> str:
        """The variable of an operation's result, which from now on holds that."""
        key = self.note(op)
        self.held[key] = None
        return self.local(key)

    def note(self, op: Op) -> tuple[str, int]:
        """Notes what the register of an operation's result holds from now on."""
        assert op.result is not None
        key = (op.result.kind, op.result.number)
        kept = self.values.get(key, set()) if self.keeps(op) else set()
        self.values[key] = {*kept, op.result.value}
        return key

    def keeps(self, op: Op) -> bool:
        """Whether the register keeps what it held where the operation does not run."""
        return op.predicate is not None and op.otherwise is None

    def rename(self, op: Op) -> list[str]:
        """Gives the value of a register another name, or one of this bundle another register."""
        assert op.result is not None
        key = (op.result.kind, op.result.number)
        if self.stays(op):
            if key in self.values:
                self.values[key].add(op.result.value)
            return []
        if op.result.value not in self.needed:
            self.note(op)
            return []
        text = self.result(op)
        return [f"{self.define(op)} = {text}"]

    def read(self, register: Register) -> str:
        key = (register.kind, register.number)
        if register.kind not in ("s", "p"):
            raise ScheduleError(f"{self.where}: a vector register decides")
        values = self.values.get(key)
        if values is None:
            self.read_first[key] = None
        elif register.value not in values:
            raise ScheduleError(f"{self.where}: {self.local(key)} holds another value by then")
        return self.local(key)

    def operand(self, operand: Operand) -> str:
        if isinstance(operand, Register):
            return self.read(operand)
        if isinstance(operand, Symbol):
            return str(self.address(operand))
        if isinstance(operand, Memory):
            return f"({' + '.join(self.operand(part) for part in operand.parts)})"
        if isinstance(operand, int):
            return str(signed(operand))
        return f"Unknown({f'the value of {operand} in {self.where}'!r})"

    def predicate(self, op: Op) -> str | None:
        if op.predicate is None:
            return None
        text = self.read(op.predicate)
        return f"opposite({text})" if op.negated else text

    def value(self, op: Op) -> str:
        """The expression of an operation's result."""
        text = self.result(op)
        predicate = self.predicate(op)
        if predicate is None:
            return text
        assert op.result is not None
        key = (op.result.kind, op.result.number)
        if op.otherwise is not None:
            before = self.read(op.otherwise)
        else:
            before = self.local(key)
            if key not in self.held:
                self.read_first[key] = None
        return f"chosen({predicate}, {text}, {before})"

    def result(self, op: Op) -> str:
        name, stem = op.name, op.name.split(".")[0]
        if any(isinstance(each, Register) and each.kind not in ("s", "p") for each in op.operands):
            return f"Unknown({f'`{name}` of {self.where}'!r})"
        operands = [self.operand(each) for each in op.operands]
        if name in _BINARY and len(operands) == 2:
            return _BINARY[name].format(*operands)
        if (name in _MOVES or stem == "int_to_ptr") and len(operands) == 1:
            return operands[0]
        if stem == "scalar_lea" and len(operands) == 2:
            return f"signed({operands[0]} + {operands[1]})"
        if stem == "scmp" and len(operands) == 2:
            comparison, kind = name.split(".")[1:3]
            if comparison in _COMPARISONS and kind in ("s32", "u32"):
                if kind == "u32":
                    operands = [f"({each} & ALL)" for each in operands]
                return f"({operands[0]} {_COMPARISONS[comparison]} {operands[1]})"
        if stem == "scalar_select" and len(operands) == 3:
            return f"chosen({', '.join(operands)})"
        if name == "pneg" and len(operands) == 1:
            return f"opposite({operands[0]})"
        if name == "sld" and isinstance(op.operands[0], Memory):
            return f"machine.load({operands[0]}, {self.where!r})"
        if name == "spop.drf" and isinstance(op.operands[0], str):
            return f"machine.quotient({int(op.operands[0].lstrip('%'))})"
        if name == "reloc":
            return "0"
        if name == "scalar_parameter_address":
            return f"machine.parameter({operands[0]})"
        return f"Unknown({f'`{name}` of {self.where}'!r})"

    def event(self, op: Op, offset: int) -> list[str]:
        name = op.name
        if name.startswith(_WITHOUT_EFFECT):
            return []
        operands = [self.operand(each) for each in op.operands]
        if name == "sst":
            call = f"machine.store({operands[0]}, {operands[1]})"
        elif name.startswith("dma.done"):
            call = f"machine.wait({offset}, {operands[0]}, {operands[1]})"
        elif name.startswith("dma."):
            source, _, target = name.removeprefix("dma.").partition("_to_")
            call = f"machine.transfer({offset}, {source!r}, {target!r}, {', '.join(operands[:4])})"
        elif name == "vsyncadd":
            call = f"machine.add({operands[0]}, {operands[1]})"
        elif name == "sdivrem.u32":
            call = f"machine.divide({op.number}, {', '.join(operands)})"
        elif name == "inlined_call":
            # What is called takes its operands from the registers, and leaves others in them.
            saved = [f"{self.place(key)} = {self.local(key)}" for key in self.held]
            loaded = [f"{self.local(key)} = {self.place(key)}" for key in self.held]
            return [*saved, f"machine.call({offset}, {op.callee!r}, S, P)", *loaded]
        elif name == "vtrace":
            call = f"machine.trace({offset}, {operands[0]})"
        elif name == "shalt.err":
            return [f"machine.halt({self.predicate(op) or True}, {self.where!r})"]
        else:
            call = f"machine.unknown({name!r}, {self.where!r})"
        predicate = self.predicate(op)
        return [call] if predicate is None else [f"if {predicate}:", f"    {call}"]

    def branch(self, op: Op, end: int) -> str:
        predicate = self.predicate(op)
        if predicate is None:
            return str(op.target)
        return f"machine.branch({predicate}, {op.target}, {end})"


_SCOPE = {
    "ALL": _ALL,
    "Unknown": Unknown,
    "both": both,
    "chosen": chosen,
    "either": either,
    "opposite": opposite,
    "signed": signed,
}

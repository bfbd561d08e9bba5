"""Replays a program's schedule: a bundle a cycle, transfers at the bandwidth of HBM, waits.

The scalar code runs with its values, so that loops take the trips that they take and each transfer
moves what it moves; nothing is computed on vectors.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.schedules.scalars import Block, Unknown, compile_blocks, signed
from benchmarks.schedules.text import Schedule, ScheduleError, Symbol

GRANULE = 32
"""Bytes that a transfer's size counts in."""
_ALL = (1 << 32) - 1
_ADDRESS_SHIFTS = (4, 0)
"""From an address to what a transfer is given, granules: VMEM, and HBM on v5e, are addressed by
512 bytes; HBM on v6e and 7x by granules."""
_SPACING = 1 << 16
"""Between the addresses of allocations, which are odd multiples of half of it: so little that 2,000
of them stay below 2**31 in granules, and none is another one's in granules."""
_START, _END = range(0x80000000, 0x8FFFFFFF), range(0x90000000, 0x9FFFFFFF)
"""Trace marks: an HLO instruction starts, or ends. What follows each is the program's own."""


@dataclass(slots=True)
class Spent:
    """What one HLO instruction, or the program around them, spent.

    Attributes:
      calls: how often it ran.
      bundles: bundles that it ran, each a cycle.
      waited: cycles in which it waited for transfers.
      hbm_bytes: bytes that the transfers it started read and write in HBM.
      transfers: transfers that it started.
    """

    calls: int = 0
    bundles: int = 0
    waited: float = 0.0
    hbm_bytes: int = 0
    transfers: int = 0

    @property
    def cycles(self) -> float:
        """All of its cycles."""
        return self.bundles + self.waited


@dataclass(slots=True)
class Replayed:
    """A program's run.

    Attributes:
      cycles: from the first HLO instruction to the end of the last.
      by_instruction: what each spent; `TLP` is the program around them.
    """

    cycles: float
    by_instruction: dict[str, Spent]

    @property
    def bundles(self) -> int:
        return sum(spent.bundles for spent in self.by_instruction.values())

    @property
    def hbm_bytes(self) -> int:
        return sum(spent.hbm_bytes for spent in self.by_instruction.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """How fast transfers are.

    Attributes:
      bytes_per_cycle: of HBM, for all transfers together.
      latency: cycles between a transfer's end at HBM and the core's notice of it.
    """

    bytes_per_cycle: float
    latency: float


def replay(
    schedules: Mapping[str, Schedule],
    engine: Engine,
    inputs: Mapping[tuple[str, int], Sequence[int]] | None = None,
    limit: int = 20_000_000,
) -> Replayed:
    """Runs a program.

    Args:
      schedules: of the program and all that it calls.
      engine: of its chip.
      inputs: words of operands that decide something, by HLO instruction and position.
      limit: how many runs of bundles it may take.

    Raises:
      ScheduleError: something decides that only the running program would know, the text cannot
        be understood, or it takes too long.
    """
    return _Machine(schedules, engine, inputs or {}, limit).run()


class _Machine:
    """One run. Times are in cycles."""

    def __init__(
        self,
        schedules: Mapping[str, Schedule],
        engine: Engine,
        inputs: Mapping[tuple[str, int], Sequence[int]],
        limit: int,
    ) -> None:
        self.schedules = schedules
        self.engine = engine
        self.inputs = inputs
        self.operands: list[tuple[int, Sequence[int]]] = []
        self.left = limit
        self.now = 0.0
        self.hbm_free = 0.0
        self.memory: dict[Any, Any] = {}
        self.flags: dict[Any, list[tuple[float, int]]] = {}
        self.spent: dict[str, Spent] = {"TLP": Spent()}
        self.current = "TLP"
        self.started: float | None = None
        self.ended: float | None = None
        self.symbols: dict[tuple[str, str], int] = {}
        self.compiled: dict[str, dict[int, Block]] = {}
        self.quotients: dict[int, Any] = {}

    def run(self) -> Replayed:
        registers = [Unknown(f"s{number} at the start") for number in range(64)]
        predicates = [Unknown(f"p{number} at the start") for number in range(32)]
        self.execute("TLP", registers, predicates)
        start = self.started if self.started is not None else 0.0
        end = self.ended if self.ended is not None else self.now
        end = max(end, self.hbm_free)
        return Replayed(end - start, {k: v for k, v in self.spent.items() if v.bundles or v.waited})

    def execute(self, name: str, registers: list[Any], predicates: list[Any]) -> None:
        schedule = self.schedules.get(name)
        if schedule is None:
            raise ScheduleError(f"no schedule of `{name}`")
        if name not in self.compiled:
            self.compiled[name] = compile_blocks(schedule, lambda each: self.address(name, each))
        blocks = self.compiled[name]
        spent = self.spent.setdefault(name, Spent())
        at = 0
        while at < schedule.length:
            block = blocks[at]
            self.left -= 1
            if self.left < 0:
                raise ScheduleError(f"`{name}` takes too long to replay")
            at = block.run(registers, predicates, self)
            self.now += block.length
            spent.bundles += block.length

    def address(self, kernel: str, symbol: Symbol) -> int:
        key = (kernel, symbol.name)
        if key not in self.symbols:
            self.symbols[key] = len(self.symbols) * _SPACING + _SPACING // 2
        return self.symbols[key] + symbol.offset

    def parameter(self, number: int) -> int:
        return self.address("parameters", Symbol(f"parameter{number}", 0))

    def load(self, address: Any, where: str) -> Any:
        if isinstance(address, Unknown):
            return address
        if address not in self.memory:
            # Between HLO instructions: whether the program before has prefetched a parameter.
            between = self.current == "TLP" and self.started is not None
            return 0 if between else Unknown(f"what {where} loads")
        return self.memory[address]

    def store(self, address: Any, value: Any) -> None:
        if isinstance(address, Unknown):
            raise ScheduleError(f"a store to where {address.reason} says")
        self.memory[address] = value

    def divide(self, number: int, dividend: Any, divisor: Any) -> None:
        known = not isinstance(dividend, Unknown) and not isinstance(divisor, Unknown) and divisor
        self.quotients[number] = (
            signed((dividend & _ALL) // (divisor & _ALL))
            if known
            else Unknown("a quotient of unknown numbers, or by zero")
        )

    def quotient(self, number: int) -> Any:
        return self.quotients.get(number, Unknown("a quotient that nothing has computed"))

    def branch(self, predicate: Any, target: int, otherwise: int) -> int:
        if self.current == "TLP" and isinstance(predicate, Unknown):
            return otherwise  # past what the program does in special cases only
        return target if predicate else otherwise

    def transfer(
        self, offset: int, source: str, target: str, start: Any, size: Any, end: Any, flag: Any
    ) -> None:
        if isinstance(size, Unknown) or isinstance(flag, Unknown):
            raise ScheduleError(f"a transfer from {source} to {target} of unknown size or flag")
        done = self.now + offset
        in_hbm = (source == "hbm") + (target == "hbm")
        if in_hbm:
            begin = max(done, self.hbm_free)
            self.hbm_free = begin + in_hbm * size * GRANULE / self.engine.bytes_per_cycle
            done = self.hbm_free + self.engine.latency
        else:
            done += size * GRANULE / self.engine.bytes_per_cycle
        self.flags.setdefault(flag, []).append((done, size))
        spent = self.spent[self.current]
        spent.hbm_bytes += in_hbm * size * GRANULE
        spent.transfers += 1
        if target == "smem":
            self.fetch(start, size, end)

    def wait(self, offset: int, flag: Any, count: Any) -> None:
        if isinstance(count, Unknown) or isinstance(flag, Unknown):
            raise ScheduleError("a wait for an unknown flag or count")
        have = 0
        for done, amount in sorted(self.flags.get(flag, [])):
            have += amount
            if have >= count:
                waited = max(0.0, done - (self.now + offset))
                self.now += waited
                self.spent[self.current].waited += waited
                return
        raise ScheduleError(f"`{self.current}` waits for {count} of which {have} come")

    def add(self, flag: Any, count: Any) -> None:
        pending = sorted(self.flags.get(flag, []))
        if isinstance(count, Unknown) or isinstance(flag, Unknown):
            raise ScheduleError("an unknown flag or count is added to")
        if count > 0:
            pending.append((self.now, count))
        left = -count
        while left > 0 and pending:
            done, amount = pending.pop(0)
            if amount > left:
                pending.insert(0, (done, amount - left))
            left -= amount
        self.flags[flag] = pending

    def call(self, offset: int, name: str, registers: list[Any], predicates: list[Any]) -> None:
        if name.startswith("<"):
            return
        outer, self.current = self.current, name
        self.now += offset
        self.spent.setdefault(name, Spent()).calls += 1
        self.pass_operands(name, registers)
        self.execute(name, registers, predicates)
        self.now -= offset
        self.current = outer

    def pass_operands(self, name: str, registers: list[Any]) -> None:
        """Notes where the operands lie whose words are known; scalars come in registers."""
        self.operands = []
        for parameter in self.schedules[name].parameters if name in self.schedules else ():
            words = self.inputs.get((name, parameter.index))
            if words is None:
                continue
            number = parameter.register.number
            if parameter.space == "<no memory space>":
                registers[number] = signed(int(words[0]))
            elif parameter.space == "smem":
                self.fill(registers[number], words)
            elif not isinstance(registers[number], Unknown):
                self.operands.append((registers[number], words))

    def fill(self, address: Any, words: Sequence[int]) -> None:
        if len(words) > _SPACING:
            raise ScheduleError(f"{len(words)} words in scalar memory")
        for index, word in enumerate(words):
            self.memory[address + index] = signed(int(word))

    def fetch(self, source: Any, size: int, target: Any) -> None:
        """What a transfer to scalar memory brings, where that is known."""
        if isinstance(source, Unknown) or isinstance(target, Unknown):
            return
        for address, words in self.operands:
            for shift in _ADDRESS_SHIFTS:
                first = (source - (address << shift)) * GRANULE // 4
                if 0 <= first < len(words):
                    self.fill(target, words[first : first + size * GRANULE // 4])

    def trace(self, offset: int, mark: Any) -> None:
        if isinstance(mark, Unknown):
            return
        mark &= 0xFFFFFFFF
        if mark in _START and self.started is None:
            self.started = self.now + offset
            self.spent["TLP"].bundles = -offset
        elif mark in _END:
            self.ended = self.now + offset

    def halt(self, predicate: Any, where: str) -> None:
        if not isinstance(predicate, Unknown) and predicate:
            raise ScheduleError(f"{where}: a bounds check fails")

    def unknown(self, name: str, where: str) -> None:
        raise ScheduleError(f"{where}: `{name}` is not known")

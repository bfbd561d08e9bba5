"""Which findings of new dumps the old ones have as well."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from hlo_tools.analysis.program import Program
from hlo_tools.diff.compare import ReadModule
from hlo_tools.diff.matching import Matching
from hlo_tools.diff.pairing import pair_modules
from hlo_tools.findings import Cost, Finding
from hlo_tools.hlo.module import Computation, Instruction, Module
from hlo_tools.hlo.provenance import Provenance

GROWTH = 1.25
"""Costs that grew by less than this factor are what they were: models differ by as much."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Linted:
    """A module and what was found in it."""

    module: ReadModule
    findings: tuple[Finding, ...]


def known_findings(old: Sequence[Linted], new: Sequence[Linted]) -> list[list[bool]]:
    """Says of each finding of each new module whether the old side has it.

    It has, if the module that corresponds has a finding of the same fingerprint, or one of the same
    rule on the instruction that corresponds; each counts once. A finding that has become more
    severe and costs more than before is a new one.
    """
    before = {side.module: side.findings for side in old}
    after = {side.module: side.findings for side in new}
    pairing = pair_modules(list(before), list(after))
    partners = {theirs: ours for ours, theirs in pairing.pairs}
    return [
        _known(partners[side.module], before[partners[side.module]], side)
        if side.module in partners
        else [False] * len(side.findings)
        for side in new
    ]


def _known(old: ReadModule, before: Sequence[Finding], new: Linted) -> list[bool]:
    known = [False] * len(new.findings)
    left = defaultdict(list)
    for finding in before:
        left[finding.fingerprint].append(finding)
    for number, finding in enumerate(new.findings):
        same = left.get(finding.fingerprint)
        if same and not _worse(same[0], finding):
            same.pop(0)
            known[number] = True
    rest = [finding for same in left.values() for finding in same]
    unknown = [number for number, found in enumerate(known) if not found]
    rules = Counter(f.id for f in rest) & Counter(new.findings[n].id for n in unknown)
    if rules:
        places = _Places(old, new.module)
        for number in unknown:
            finding = new.findings[number]
            partner = next((f for f in rest if places.same(f, finding)), None)
            if partner is not None and not _worse(partner, finding):
                rest.remove(partner)
                known[number] = True
    return known


def _worse(old: Finding, new: Finding) -> bool:
    if new.severity <= old.severity:
        return False
    return any(
        after is not None and before is not None and after > GROWTH * before
        for before, after in _figures(old.cost, new.cost)
    )


def _figures(old: Cost, new: Cost) -> tuple[tuple[float | None, float | None], ...]:
    return (old.seconds, new.seconds), (old.bytes, new.bytes)


class _Places:
    """Says whether findings of two compiles of a module blame the same instruction."""

    def __init__(self, old: ReadModule, new: ReadModule) -> None:
        self._modules = old.module, new.module
        self._matching = Matching(*(_program(side.module) for side in (old, new)))
        self._fusions = _callers(old.module), _callers(new.module)

    def same(self, old: Finding, new: Finding) -> bool:
        """Whether it is one rule and one instruction, or inside fusions one kernel."""
        if old.id != new.id:
            return False
        ours, theirs = self._blamed(0, old), self._blamed(1, new)
        return ours is not None and theirs is not None and self._matching.partner(ours) is theirs

    def _blamed(self, side: int, finding: Finding) -> Instruction | None:
        """The executed instruction: of one inside a fusion, the fusion."""
        computation = self._modules[side].computation(finding.computation)
        found = computation.instruction(finding.instruction) if computation is not None else None
        fusions = self._fusions[side]
        seen = set()
        while found is not None and found.computation in fusions and found not in seen:
            seen.add(found)
            found = fusions[found.computation]
        return found


def _program(module: Module) -> Program:
    return Program(module, chip=None, provenance=Provenance(module))


def _callers(module: Module) -> dict[Computation, Instruction]:
    fused = ((i.fused_computation, i) for i in module.instructions() if i.opcode == "fusion")
    return {body: fusion for body, fusion in fused if body is not None}

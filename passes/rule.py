"""What a rule is, and what it is given to work with."""

import inspect
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from hlo_tools.analysis.roofline import LAUNCH_SECONDS, results_seconds, transfer_seconds
from hlo_tools.findings import Cost, Finding, Related, Severity
from hlo_tools.hlo.module import Instruction
from passes.facts import Facts

ERROR_SHARE = 0.10
"""A finding that takes this share of the step or more is an error."""

NEGLIGIBLE = 0.05
"""Findings below this fraction of the smallest saving that is worth a warning are dropped, not
even kept as notes: with the default threshold, 0.05 % of the step."""


MODEL_MARGIN = 1.25
"""Times that two models give are taken to differ from this factor on (docs/cost-model.md)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One rule of the catalogue.

    Attributes:
      id: the code, `HLO301`.
      name: names the defect, `padding-waste`.
      summary: the first line of its documentation.
      documentation: the page that `--explain` prints.
      options: its options with their default values.
      check: facts in, findings out.
    """

    id: str
    name: str
    summary: str
    documentation: str = field(repr=False)
    options: Mapping[str, object]
    check: Callable[["RuleContext"], Iterator[Finding]] = field(repr=False)


def rule(
    *, id: str, name: str, options: Mapping[str, object] | None = None
) -> Callable[[Callable[["RuleContext"], Iterator[Finding]]], Rule]:
    """Makes a rule of a generator function; the docstring of its module is its documentation."""

    def wrap(check: Callable[[RuleContext], Iterator[Finding]]) -> Rule:
        documentation = inspect.cleandoc(sys.modules[check.__module__].__doc__ or "")
        return Rule(
            id=id,
            name=name,
            summary=documentation.partition("\n")[0].rstrip("."),
            documentation=documentation,
            options=MappingProxyType(dict(options or {})),
            check=check,
        )

    return wrap


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """What a finding costs, and what that makes it.

    Attributes:
      cost: as reports show it.
      severity: by its share of the step.
      negligible: too small even for a note.
    """

    cost: Cost
    severity: Severity
    negligible: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleContext:
    """The facts about one module, and how to report on it.

    Attributes:
      facts: the analyses.
      rule: the rule that runs.
      options: its options, those of the user laid over the defaults.
      min_saving: the share of the step, 0 to 1, from which on a finding is a warning.
      path: where the module was read from.
    """

    facts: Facts
    rule: Rule
    options: Mapping[str, object]
    min_saving: float
    path: str

    def number(self, option: str) -> float:
        """The value of a numeric option."""
        value = self.options[option]
        assert isinstance(value, int | float)
        return float(value)

    def times(self, instruction: Instruction) -> int:
        """Executions of the instruction per step, a loop of unknown length counted once."""
        return self.facts.execution.times_at_least(instruction.computation)

    def price(
        self,
        instruction: Instruction,
        *,
        effect: str,
        bytes: int | None = None,
        seconds: float | None = None,
        hbm_bytes: int = 0,
    ) -> Price:
        """Prices what a remedy would save.

        Args:
          instruction: the one to blame.
          effect: see `Cost.effect`.
          bytes: per execution of the instruction; of memory held, in all.
          seconds: per execution of the instruction.
          hbm_bytes: the part of `bytes` that goes through device memory, per execution.
        """
        times = self.times(instruction)
        holds = effect == "holds"
        total_bytes = bytes if bytes is None or holds else bytes * times
        total_seconds = None if seconds is None else seconds * times
        traffic = self.facts.cost.step_bytes
        traffic_share = hbm_bytes * times / traffic if traffic else 0.0
        share = self._share(total_seconds, total_bytes if holds else None)
        if share is None and hbm_bytes:
            share = min(1.0, traffic_share)
        cost = Cost(
            effect=effect,
            bytes=total_bytes,
            seconds=total_seconds,
            share=share,
            times_per_step=self.facts.execution.times(instruction.computation),
        )
        return Price(
            cost=cost,
            severity=self._severity(share or 0.0, traffic_share),
            negligible=max(share or 0.0, traffic_share) < self.facts.floor,
        )

    def price_of(self, instruction: Instruction) -> Price:
        """Prices an instruction that the remedy would do away with."""
        traffic = self.facts.cost.traffic(instruction)
        return self.price(
            instruction,
            effect="moves",
            bytes=traffic.total,
            seconds=self.facts.cost.seconds(instruction) if self.facts.chip else None,
            hbm_bytes=traffic.hbm,
        )

    def _share(self, seconds: float | None, held: int | None) -> float | None:
        """The larger of the shares of the step's time and of its peak memory."""
        shares = []
        if seconds is not None and self.facts.cost.step_seconds:
            shares.append(seconds / self.facts.cost.step_seconds)
        if held is not None and self.facts.peak_hbm_bytes:
            shares.append(held / self.facts.peak_hbm_bytes)
        return min(1.0, max(shares)) if shares else None

    def _severity(self, share: float, traffic_share: float) -> Severity:
        """Error from 10 % of the step's time or memory, warning from the smallest saving.

        A large part of the traffic in a step that other work dominates is a warning at most.
        """
        if share >= ERROR_SHARE:
            return Severity.ERROR
        if max(share, traffic_share) >= self.min_saving:
            return Severity.WARNING
        return Severity.NOTE

    def matrix_bound_saving(self, instruction: Instruction, used: float) -> float:
        """Seconds saved if an instruction's products took only the share `used` of their time.

        A product whose data bound it gets no faster: nothing is saved below the time in which
        they come and go, nor where all its time is that, but for the margin by which models differ.
        """
        seconds, data = self.facts.cost.seconds(instruction), self._data_seconds(instruction)
        if seconds <= MODEL_MARGIN * data:
            return 0.0
        return max(0.0, seconds - max(seconds * used, data))

    def _data_seconds(self, instruction: Instruction) -> float:
        """Seconds of starting, of device memory, and of taking results out of the matrix unit."""
        chip, model = self.facts.cost.chip, self.facts.cost
        if chip is None:
            return 0.0
        work = model.work(instruction)
        results = sum(results_seconds(chip, size) for size in work.matmuls) if work else 0.0
        return LAUNCH_SECONDS + max(transfer_seconds(chip, model.traffic(instruction)), results)

    def finding(
        self,
        instruction: Instruction,
        price: Price,
        *,
        message: str,
        fix: str,
        related: tuple[Related, ...] = (),
        place: Instruction | None = None,
        at_most: Severity = Severity.ERROR,
        at_least: Severity = Severity.NOTE,
    ) -> Finding:
        """A finding that blames `instruction`.

        Args:
          instruction: the one to blame.
          price: from `price` or `price_of`.
          message: one plain sentence.
          fix: what to do.
          related: other instructions that it takes to understand it.
          place: the instruction whose source line is the headline, where that is another one.
          at_most: caps the severity, where the rule is less than sure that it matters.
          at_least: the least severity, where no model prices what happens.
        """
        provenance = self.facts.provenance
        located = place or instruction
        return Finding(
            rule=self.rule.name,
            id=self.rule.id,
            severity=max(at_least, min(at_most, price.severity)),
            module=self.facts.module.name,
            path=self.path,
            computation=instruction.computation.name,
            instruction=instruction.name,
            hlo_line=instruction.line,
            op_name=provenance.op_name(located),
            source=provenance.location(located),
            stack=provenance.stack(located),
            message=message,
            fix=fix,
            cost=price.cost,
            related=related,
        )

    def related(self, instruction: Instruction, message: str) -> Related:
        """A note that points at another instruction."""
        return Related(
            computation=instruction.computation.name,
            instruction=instruction.name,
            hlo_line=instruction.line,
            message=message,
            source=self.facts.provenance.location(instruction),
        )

"""Costs that findings claim of one step, so that together they are no more than the step.

Each rule prices its own remedy as if it were the only one, and two may spare the same work: a copy
that changes a layout also moves padding. Where all claims are more than there is, the largest keep
theirs, and of the others is told what is left. What makes a finding an error or a warning is what
its remedy alone would save.
"""

from collections.abc import Sequence
from dataclasses import replace

from hlo_tools.findings import Cost, Finding


def apportioned(findings: Sequence[Finding], step_seconds: float | None) -> list[Finding]:
    """The findings, in the same order, with shares of time or traffic that add up to at most 1.

    Memory that is held is no part of the step; time that comes with it is.

    Args:
      findings: those of all rules about one module.
      step_seconds: modelled seconds of the step; `None` where there are none.
    """
    shares = [_share(finding.cost, step_seconds) for finding in findings]
    kept = list(findings)
    left = 1.0
    # The sort is stable: equal claims are served in the order of the text.
    for number in sorted(range(len(kept)), key=lambda n: -shares[n]):
        granted = min(shares[number], left)
        left -= granted
        if granted < shares[number]:
            kept[number] = _reduced(kept[number], granted, step_seconds)
    return kept


def _share(cost: Cost, step_seconds: float | None) -> float:
    """The part of the step, 0 to 1, that a finding claims."""
    if cost.effect != "holds":
        return cost.share or 0.0
    return min(1.0, cost.seconds / step_seconds) if cost.seconds and step_seconds else 0.0


def _reduced(finding: Finding, share: float, step_seconds: float | None) -> Finding:
    cost = finding.cost
    if cost.seconds is not None and step_seconds:
        cost = replace(cost, seconds=min(cost.seconds, share * step_seconds))
    if cost.effect != "holds":
        cost = replace(cost, share=share)
    return replace(finding, cost=cost)

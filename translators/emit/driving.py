"""The walk over a kernel's ops.

Ops with regions ask for them through generators, which wait on a stack: nesting costs no stack of
Python's.
"""

from translators.emit.emission import Emission, Enter, RetryError, Steps
from translators.emit.terms import Emitted, PointerTerm
from translators.graph.graph import Region, Value


def run(e: Emission, region: Region) -> list[Emitted]:
    """Emits a region and everything inside; gives the values that it ends with."""

    def whole() -> Steps:
        ends.extend((yield Enter(region)))

    ends: list[Emitted] = []
    drive(e, whole())
    return ends


def drive(e: Emission, steps: Steps) -> None:
    """Lets a structured op emit itself, with the regions that it asks for."""
    # Each entry is a region with the place of the op that comes next, or a structured op.
    stack: list[tuple[Region, int] | Steps] = [steps]
    given: list[Emitted] | None = None
    failure: RetryError | None = None
    while stack:
        top = stack.pop()
        if not isinstance(top, tuple):
            try:
                if failure is not None:
                    problem, failure = failure, None
                    wish = top.throw(problem)
                else:
                    wish = next(top) if given is None else top.send(given)
            except StopIteration:
                given = None
            except RetryError as error:
                failure = error
            else:
                stack += [top, (wish.region, 0)]
            continue
        if failure is not None:
            continue
        try:
            given = _step(e, stack, *top)
        except RetryError as error:
            failure = error
    if failure is not None:
        raise failure


def _step(
    e: Emission, stack: "list[tuple[Region, int] | Steps]", region: Region, index: int
) -> list[Emitted] | None:
    """Emits one op; gives the region's values if it is its end."""
    op = region.ops[index]
    e.writer.location = op.location or e.writer.location
    if op is region.terminator:
        return [_ending(e, each) for each in op.operands]
    rule = e.rules.get(op.name)
    if rule is None:
        raise e.refuse(op, "has no form in JAX yet")
    stack.append((region, index + 1))
    started = rule(e, op)
    if started is not None:
        stack.append(started)
    return None


def _ending(e: Emission, value: Value) -> Emitted:
    found = e.found(value)
    return found if isinstance(found, PointerTerm) else e.term(value)

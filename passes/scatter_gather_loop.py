"""A scatter or gather was compiled to a loop, one update or slice a trip.

What it does
  Finds loops that the compiler made of a scatter, a gather or a batched dynamic slice, and compares
  what they take with what reading and writing their whole result once would take. It reports the
  difference.

Why it matters
  A trip of such a loop costs some microseconds however little it moves, and the trips run one after
  another: 1024 sequences that each write one row of their cache wait 1024 times.

Known problems
  Where the updates are few and the array is large the loop is the faster way: then the rule is
  silent. Scatters and gathers that run as one kernel are not judged, for no dump says how long
  those take; nor is the sort of its indices that precedes some of them.

Example
  jax.vmap(lambda c, n, p: jax.lax.dynamic_update_slice(c, n[None], (p, 0)))(cache, new, position)

Use instead
  at = jnp.arange(cache.shape[1]) == position[:, None]
  jnp.where(at[:, :, None], new[:, None], cache)     # one pass over the cache
"""

import re
from collections.abc import Iterator

from hlo_tools.analysis.roofline import transfer_seconds
from hlo_tools.analysis.traffic import Traffic
from hlo_tools.findings import Finding
from hlo_tools.hlo.module import Instruction
from hlo_tools.hlo.shape import Shape
from passes.rule import RuleContext, rule
from passes.words import array

_OP_NAME = re.compile(r'op_name="(?:[^"\\]|\\.)*?/?(scatter|gather)[\w\-]*"')
"""The own name of a loop that once was a scatter or gather; that of a written one is `while`."""


@rule(id="HLO502", name="scatter-gather-loop")
def check(ctx: RuleContext) -> Iterator[Finding]:
    """One finding for each loop that stands for a scatter or gather."""
    execution = ctx.facts.execution
    for loop in execution.instructions():
        if loop.opcode != "while":
            continue
        made_of = _OP_NAME.search(loop.attribute_text)
        result = _result(loop) if made_of is not None else None
        trips = execution.trip_count(loop)
        if made_of is None or result is None or trips is None:
            continue
        saved = _saved(ctx, loop, trips, result)
        price = ctx.price(loop, effect="wastes", seconds=saved)
        if not saved or price.negligible:
            continue
        kind = made_of[1]
        each = "update" if kind == "scatter" else "slice"
        yield ctx.finding(
            loop,
            price,
            message=(
                f"the {kind} making `{array(result)}` runs as a loop of {trips} trips, one {each} "
                "after another"
            ),
            fix=_FIXES[kind],
        )


_FIXES = {
    "scatter": (
        "write all updates in one pass, `jnp.where(jnp.arange(n) == position[:, None], new, old)`, "
        "or give the batch one common position, so that one `dynamic_update_slice` serves it"
    ),
    "gather": (
        "gather single rows, `x[jnp.arange(batch)[:, None], position[:, None] + jnp.arange(k)]`, "
        "or give the batch one common position, so that one `dynamic_slice` serves it"
    ),
}


def _result(loop: Instruction) -> Shape | None:
    """What is read of the loop's state: the largest array."""
    read = [user.shape for user in loop.users if user.opcode == "get-tuple-element"]
    arrays = [shape for shape in read if shape.is_array]
    return max(arrays, key=lambda shape: shape.padded_bytes, default=None)


def _saved(ctx: RuleContext, loop: Instruction, trips: int, result: Shape) -> float | None:
    """Seconds of the loop, each time it is reached, beyond one pass over its result."""
    model, body = ctx.facts.cost, loop.called("body")
    if model.chip is None or body is None:
        return None
    one_pass = Traffic(hbm_read=result.padded_bytes, hbm_written=result.padded_bytes)
    takes = trips * sum(model.seconds(instruction) for instruction in body.instructions)
    return max(0.0, takes - transfer_seconds(model.chip, one_pass))

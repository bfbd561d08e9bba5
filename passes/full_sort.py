"""A full sort of which only the first elements are used.

What it does
  Finds sorts whose every result is read through slices that reach only the first or the last few
  elements of each row: at most an eighth (option `max_kept`). What is priced is the sort, less the
  one reading of its keys that any selection needs.

Why it matters
  A sort exchanges all elements log² times and moves every payload along; a selection reads the keys
  once and keeps k of them.

Known problems
  Sorts that the compiler itself makes of `jax.lax.top_k` are left out. Ties come in another order
  from `top_k` of negated keys than from the end of a stable sort.

Example
  best = jnp.argsort(scores)[:, -8:]               # sorts all of the vocabulary

Use instead
  values, best = jax.lax.top_k(scores, 8)          # or jax.lax.approx_max_k where nearly will do
"""

import re
from collections.abc import Iterator

from hlo_tools.analysis.roofline import transfer_seconds
from hlo_tools.analysis.traffic import Traffic
from hlo_tools.findings import Finding
from hlo_tools.hlo.attributes import parse_integers
from hlo_tools.hlo.module import Instruction
from hlo_tools.hlo.shape import Shape
from passes.rule import RuleContext, rule
from passes.words import array

_RANGE = re.compile(r"\[(\d{1,18}):(\d{1,18})[\]:]")
_ALONG = frozenset({"convert", "negate", "reverse"})
"""Opcodes between a sort and its slice that leave the first elements first, or make them last."""

_SELECTIONS = ("/top_k", "/approx_top_k")
"""The ends of names of operations that already ask for the first elements only."""


@rule(id="HLO503", name="full-sort", options={"max_kept": 0.125})
def check(ctx: RuleContext) -> Iterator[Finding]:
    """One finding for each sort of which little is used."""
    for instruction in ctx.facts.execution.instructions():
        if instruction.opcode != "sort" or not instruction.operands:
            continue
        keys = instruction.operands[0].shape
        along = parse_integers(instruction.attribute("dimensions") or "")
        if len(along) != 1 or not keys.is_array or not 0 <= along[0] < len(keys.dimensions):
            continue
        size = keys.dimensions[along[0]]
        kept = _kept(ctx, instruction, keys, along[0])
        if kept is None or kept > ctx.number("max_kept") * size:
            continue
        if (ctx.facts.provenance.op_name(instruction) or "").endswith(_SELECTIONS):
            continue
        saved, traffic = _saved(ctx, instruction, keys), ctx.facts.cost.traffic(instruction)
        price = ctx.price(
            instruction, effect="moves", bytes=traffic.total, seconds=saved, hbm_bytes=traffic.hbm
        )
        if price.negligible:
            continue
        yield ctx.finding(
            instruction,
            price,
            message=(
                f"all {size} elements of each row of `{array(keys)}` are sorted, and none used but "
                f"of the {kept} at an end"
            ),
            fix=(
                f"take `jax.lax.top_k(x, {kept})`, which gives values and indices (of `-x` for the "
                "smallest); `jax.lax.approx_max_k` is faster still where nearly the best will do"
            ),
        )


def _kept(ctx: RuleContext, sort: Instruction, keys: Shape, dimension: int) -> int | None:
    """How far from the ends of a row elements are read; `None` where all may be."""
    kept = 0
    stack = [sort]
    while stack:
        for reader, _ in ctx.facts.dataflow.reads(stack.pop()):
            if not reader.operands or reader.operands[0].shape.dimensions != keys.dimensions:
                return None
            if reader.opcode in _ALONG:
                stack.append(reader)
                continue
            end = _end(reader, dimension, keys.dimensions[dimension])
            if end is None:
                return None
            kept = max(kept, end)
    return kept or None


def _end(reader: Instruction, dimension: int, size: int) -> int | None:
    """How far from the nearer end of a row a slice reaches; `None` for what is no slice."""
    if reader.opcode != "slice":
        return None
    ranges = _RANGE.findall(reader.attribute("slice") or "")
    if dimension >= len(ranges):
        return None
    start, limit = (int(text) for text in ranges[dimension])
    return min(limit, size - start)


def _saved(ctx: RuleContext, sort: Instruction, keys: Shape) -> float | None:
    """Seconds of the sort that a selection would not take: it reads the keys once."""
    model = ctx.facts.cost
    if model.chip is None:
        return None
    read = Traffic(hbm_read=0 if keys.on_chip else keys.padded_bytes)
    return max(0.0, model.seconds(sort) - transfer_seconds(model.chip, read))

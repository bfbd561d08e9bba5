"""An argument that the step replaces is not donated, or is donated and copied all the same.

What it does
  Matches results with arguments of the same type and layout that no result aliases. Where the
  result is the argument updated (elementwise, by slices, through loops), it reports the memory
  that both occupy together; where types merely agree, that is a note. An argument that is aliased
  in the module's header, and whose whole buffer is copied all the same, is reported as well.

Why it matters
  Parameters, optimiser state and KV caches are the largest buffers there are. Without donation the
  old and the new ones are in memory at the same time, and what could have been updated in place is
  copied first.

Known problems
  Only the caller knows whether the old value is needed afterwards. A program with a single result
  is more often a function of an activation than a step that updates state: without a copy that
  donation would save, it gets a note only.

Example
  step = jax.jit(train_step)

Use instead
  step = jax.jit(train_step, donate_argnames=("params", "opt_state"))
"""

from collections import defaultdict
from collections.abc import Iterator

from hlo_tools.findings import Finding, Severity
from hlo_tools.hlo.module import Instruction
from hlo_tools.hlo.shape import Shape
from passes.donation import Result, aliases, donated_parameters, results
from passes.graph import producer, same_layout
from passes.loop_carried_copy import plain_copy
from passes.rule import RuleContext, rule
from passes.updates import updated_parameters
from passes.words import array, nbytes


@rule(id="HLO203", name="missing-donation", options={"min_bytes": 1 << 20})
def check(ctx: RuleContext) -> Iterator[Finding]:
    """One finding for each group of arguments of one kind, and for each defeated donation."""
    entry = ctx.facts.module.entry
    if entry is None or not entry.complete:
        return
    yield from _missing(ctx)
    yield from _defeated(ctx)


def _missing(ctx: RuleContext) -> Iterator[Finding]:
    module = ctx.facts.module
    assert module.entry is not None
    taken = {alias.output for alias in aliases(module)}
    donated = donated_parameters(module)
    free: dict[object, list[Instruction]] = defaultdict(list)
    for number, parameter in enumerate(module.entry.parameters):
        if number not in donated and parameter.shape.is_array and parameter.shape.dimensions:
            free[_placeless(parameter.shape)].append(parameter)
    if not free:
        return
    matched: dict[Instruction, tuple[Result, bool]] = {}
    unmatched: list[Result] = []
    for result in results(module):
        if result.path in taken:
            continue
        candidates = [p for p in free.get(_placeless(result.shape), ()) if p not in matched]
        if not candidates or _too_small(ctx, result):
            continue
        sources = updated_parameters(result.instruction, result.index)
        updated = [p for p in candidates if p in sources and p is not _passed_on(result)]
        if updated:
            matched[updated[0]] = (result, True)
        else:
            unmatched.append(result)
    for result in unmatched:
        for parameter in free[_placeless(result.shape)]:
            if parameter not in matched:
                matched[parameter] = (result, False)
                break
    yield from _report_missing(ctx, matched)


def _report_missing(
    ctx: RuleContext, matched: dict[Instruction, tuple[Result, bool]]
) -> Iterator[Finding]:
    """One finding for the arguments that are updated at one line, or merely agree in type."""
    groups: dict[object, list[Instruction]] = defaultdict(list)
    for parameter, (result, updated) in matched.items():
        location = ctx.facts.provenance.location(result.maker)
        key = (updated, location.file, location.line) if location else (updated, "", 0)
        groups[key].append(parameter)
    for parameters in groups.values():
        parameters.sort(key=lambda p: -p.shape.padded_bytes)
        first = parameters[0]
        result, updated = matched[first]
        copies = [c for p in parameters for c in _entry_copies(ctx, p)]
        seconds = sum(ctx.facts.cost.seconds(c) for c in copies) if copies else None
        sure = updated and (copies or len(results(ctx.facts.module)) > 1)
        held = sum(p.shape.padded_bytes for p in parameters)
        price = ctx.price(first, effect="holds", bytes=held, seconds=seconds)
        if price.negligible or held < ctx.number("min_bytes"):
            continue
        yield ctx.finding(
            first,
            price,
            message=_missing_message(ctx, parameters, updated, copies),
            fix=_missing_fix(ctx, parameters),
            related=(
                ctx.related(result.maker, "the result that could take its place"),
                *(ctx.related(c, "copied here because it is not donated") for c in copies[:3]),
            ),
            place=result.maker,
            at_most=Severity.ERROR if sure else Severity.NOTE,
        )


def _missing_message(
    ctx: RuleContext,
    parameters: list[Instruction],
    updated: bool,
    copies: list[Instruction],
) -> str:
    names = ", ".join(f"`{_name(ctx, p)}`" for p in parameters[:3])
    more = f" and {len(parameters) - 3} more" if len(parameters) > 3 else ""
    plural = len(parameters) > 1
    held = nbytes(sum(p.shape.padded_bytes for p in parameters))
    relation = (
        "replaced by a result of the same type and layout"
        if updated
        else "of the type and layout of a result"
    )
    text = (
        f"{'arguments' if plural else 'argument'} {names}{more} "
        f"(`{array(parameters[0].shape)}`{' and alike' if plural else ''}) "
        f"{'are' if plural else 'is'} {relation} but not donated: {held} are held twice"
    )
    if copies:
        text += ", and copied before the update"
    return text


def _missing_fix(ctx: RuleContext, parameters: list[Instruction]) -> str:
    # `params['w']` and `state[0].mu` are leaves of the arguments `params` and `state`.
    leaves = (_name(ctx, parameter) for parameter in parameters)
    names = dict.fromkeys(leaf.partition("[")[0].partition(".")[0] for leaf in leaves)
    listed = ", ".join(repr(name) for name in list(names)[:4])
    rest = ", ..." if len(names) > 4 else "," if len(names) == 1 else ""
    what, whose = ("argument", "its old value") if len(names) == 1 else ("arguments", "old values")
    return (
        f"donate the {what} if the caller does not need {whose}: "
        f"`jax.jit(step, donate_argnames=({listed}{rest}))`"
    )


def _defeated(ctx: RuleContext) -> Iterator[Finding]:
    module = ctx.facts.module
    assert module.entry is not None
    known = aliases(module)
    if not known:
        return
    parameters = module.entry.parameters
    by_path = {result.path: result for result in results(module)}
    donated = {alias.parameter for alias in known}
    reported: set[Instruction] = set()
    for alias in known:
        result = by_path.get(alias.output)
        if result is None or alias.parameter >= len(parameters):
            continue
        name = _name(ctx, parameters[alias.parameter])
        copy = producer(result.instruction)
        if _whole_copy(copy) and _made_by_loop(copy):
            reported.add(copy)
            yield from _report_defeated(
                ctx, copy, name, "its new value is built in another buffer and copied over it"
            )
    for instruction in module.entry.instructions:
        if instruction in reported or not plain_copy(ctx, instruction):
            continue
        origin = producer(instruction.operands[0])
        if origin.opcode != "parameter" or parameters.index(origin) not in donated:
            continue
        yield from _report_defeated(
            ctx,
            instruction,
            _name(ctx, origin),
            "its old value is still needed when the new one is written",
        )


def _report_defeated(
    ctx: RuleContext, copy: Instruction, name: str, reason: str
) -> Iterator[Finding]:
    price = ctx.price_of(copy)
    if price.negligible:
        return
    provenance = ctx.facts.provenance
    readers = [user for user in copy.users if user.opcode != "tuple"]
    place = copy if provenance.location(copy) or not readers else readers[0]
    yield ctx.finding(
        copy,
        price,
        message=(
            f"argument `{name}` is donated, yet its whole buffer `{array(copy.shape)}` "
            f"({nbytes(copy.shape.padded_bytes)}) is copied: {reason}"
        ),
        fix=(
            "return only the new value and finish with the old one before it is overwritten; "
            "carry a cache through `jax.lax.scan` or `fori_loop` and update it in place with "
            "`.at[].set`, instead of passing it as `xs` and collecting it as `ys`"
        ),
        place=place,
    )


def _whole_copy(instruction: Instruction) -> bool:
    return instruction.opcode == "copy" and same_layout(
        instruction.operands[0].shape, instruction.shape
    )


def _made_by_loop(copy: Instruction) -> bool:
    origin = producer(copy.operands[0])
    return origin.opcode == "get-tuple-element" and origin.operands[0].opcode == "while"


def _entry_copies(ctx: RuleContext, parameter: Instruction) -> list[Instruction]:
    """Copies of a whole argument that in-place update would need no more."""
    return [user for user in parameter.users if plain_copy(ctx, user)]


def _passed_on(result: Result) -> Instruction:
    """Where the result comes from, copies looked through: an argument, if returned as it came."""
    made = producer(result.instruction)
    while made.opcode == "copy" and made.operands:
        made = producer(made.operands[0])
    return made


def _name(ctx: RuleContext, parameter: Instruction) -> str:
    """What the program calls an argument; frontends that call all of them alike do not count."""
    name = ctx.facts.provenance.op_name(parameter)
    others = parameter.computation.parameters
    if name is None or sum(ctx.facts.provenance.op_name(p) == name for p in others[:100]) > 1:
        return parameter.name
    return name


def _placeless(shape: Shape) -> object:
    """Type and layout, memory space apart: an argument and a result may lie in different ones."""
    layout = shape.layout
    order = (layout.minor_to_major, layout.tiles) if layout else None
    return shape.element_type, shape.dimensions, order


def _too_small(ctx: RuleContext, result: Result) -> bool:
    price = ctx.price(result.instruction, effect="holds", bytes=result.shape.padded_bytes)
    return price.negligible

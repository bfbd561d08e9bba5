"""Structured control flow and calls."""

import numpy as np

from translators.graph.errors import UndefinedError
from translators.graph.graph import Op
from translators.graph.machine import Enter, Machine
from translators.graph.ops import rules
from translators.graph.ops.definition import (
    OPTIONAL_FLAG,
    OPTIONAL_INT,
    TEXT,
    OpDefinition,
    Operands,
    Results,
    Steps,
    Typing,
    pass_on,
)
from translators.graph.ops.regions import branches, loops, repeats
from translators.graph.types import I1, IntType, Type

_MANY = 1 << 16
_ENDS = ("scf.yield", "tt.return")
# How Triton's scheduler is to treat a loop; changes no value.
_SCHEDULE = {
    "tt.num_stages": OPTIONAL_INT,
    "tt.loop_unroll_factor": OPTIONAL_INT,
    "tt.warp_specialize": OPTIONAL_FLAG,
    "tt.flatten": OPTIONAL_FLAG,
    "tt.disallow_acc_multi_buffer": OPTIONAL_FLAG,
    "llvm.loop_annotation": OPTIONAL_FLAG,
}


def _for_rule(typing: Typing) -> tuple[Type, ...]:
    rules.expect_count(typing, 3, _MANY)
    rules.scalar_integer(rules.same_type(*typing.operands[:3]), "a bound")
    return typing.operands[3:]


def _for(op: Op, operands: Operands, machine: Machine) -> Steps:
    counter = op.operands[0].type
    assert isinstance(counter, IntType)
    lower, upper, step = (int(each) for each in operands[:3])
    if op.flag("unsignedCmp"):
        modulus = 1 << counter.width
        lower, upper, step = (each % modulus for each in (lower, upper, step))
    if step <= 0:
        raise UndefinedError(f"steps by {step}")
    carried: Results = operands[3:]
    for index in range(lower, upper, step):
        held = np.array(counter.wrap(index), operands[0].dtype)
        carried = yield Enter(op.regions[0], [held, *carried])
    return carried


def _if_rule(typing: Typing) -> tuple[Type, ...]:
    rules.expect_count(typing, 1)
    rules.expect(typing.operands[0] == I1, f"takes `i1`, not `{typing.operands[0]}`")
    return typing.wanted or ()


def _if(op: Op, operands: Operands, machine: Machine) -> Steps:
    which = 0 if operands[0] else 1
    if which == len(op.regions):
        return ()
    given = yield Enter(op.regions[which], ())
    return given


def _while_rule(typing: Typing) -> tuple[Type, ...]:
    rules.expect_count(typing, 0, _MANY)
    return typing.wanted or ()


def _while(op: Op, operands: Operands, machine: Machine) -> Steps:
    before, after = op.regions
    carried = operands
    while True:
        condition, *carried = yield Enter(before, carried)
        if not condition:
            return carried
        carried = yield Enter(after, carried)


def _condition_rule(typing: Typing) -> tuple[Type, ...]:
    rules.expect_count(typing, 1, _MANY)
    rules.expect(typing.operands[0] == I1, f"takes `i1` first, not `{typing.operands[0]}`")
    return ()


def _call_rule(typing: Typing) -> tuple[Type, ...]:
    rules.expect_count(typing, 0, _MANY)
    return typing.wanted or ()


def _call(op: Op, operands: Operands, machine: Machine) -> Steps:
    callee = machine.functions[op.text("callee")]
    given = yield Enter(callee.body, operands, True)
    return given


OPS: tuple[OpDefinition, ...] = (
    OpDefinition(
        name="scf.for",
        summary="the body for each counter from lower up to upper bound by step, carrying values",
        rule=_for_rule,
        meaning=_for,
        attributes={"unsignedCmp": OPTIONAL_FLAG, **_SCHEDULE},
        regions=(1,),
        ends=_ENDS,
        check=loops,
    ),
    OpDefinition(
        name="scf.if",
        summary="the first region where the condition holds, else the second",
        rule=_if_rule,
        meaning=_if,
        regions=(1, 2),
        ends=_ENDS,
        check=branches,
    ),
    OpDefinition(
        name="scf.while",
        summary="first region, then second, again for as long as the first one's condition holds",
        rule=_while_rule,
        meaning=_while,
        regions=(2,),
        ends=("scf.condition", *_ENDS),
        check=repeats,
    ),
    OpDefinition(
        name="tt.call",
        summary="what a function of the module gives",
        rule=_call_rule,
        meaning=_call,
        attributes={"callee": TEXT},
    ),
    OpDefinition(
        name="scf.yield",
        summary="ends a region with its values",
        rule=rules.nothing(0, _MANY),
        meaning=pass_on,
        terminator=True,
    ),
    OpDefinition(
        name="scf.condition",
        summary="ends the first region of a loop: whether to go on, and the values",
        rule=_condition_rule,
        meaning=pass_on,
        terminator=True,
    ),
    OpDefinition(
        name="tt.return",
        summary="leaves the function with its results, from any depth",
        rule=rules.nothing(0, _MANY),
        meaning=pass_on,
        terminator=True,
    ),
)

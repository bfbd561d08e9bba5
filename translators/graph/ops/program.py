"""Where a program stands in its grid, and what has no meaning for values."""

import numpy as np

from translators.graph.graph import Op
from translators.graph.machine import Machine, Record
from translators.graph.numerics import Array
from translators.graph.ops import rules
from translators.graph.ops.definition import (
    OPTIONAL_FLAG,
    OPTIONAL_INT,
    OPTIONAL_INTS,
    TEXT,
    Effect,
    OpDefinition,
    Operands,
    Typing,
    one_of,
)
from translators.graph.types import I1, I32, Type, element_of

_AXIS = one_of(0, 1, 2)


def _axis_rule(typing: Typing) -> tuple[Type, ...]:
    rules.expect_count(typing, 0)
    return (I32,)


def _program_id(op: Op, operands: Operands, machine: Machine) -> tuple[Array]:
    return (np.array(machine.program[op.integer("axis")], np.int32),)


def _num_programs(op: Op, operands: Operands, machine: Machine) -> tuple[Array]:
    return (np.array(machine.grid[op.integer("axis")], np.int32),)


def _condition_rule(typing: Typing) -> tuple[Type, ...]:
    rules.expect_count(typing, 1)
    (condition,) = typing.operands
    rules.expect(element_of(condition) == I1, f"takes `i1`, not `{condition}`")
    return ()


def _record_unless_true(op: Op, operands: Operands, machine: Machine) -> tuple[()]:
    (condition,) = operands
    if not condition.all():
        machine.records.append(
            Record(
                op=op,
                program=machine.program,
                message=op.text("message"),
                values=(condition.copy(),),
            )
        )
    return ()


def _print(op: Op, operands: Operands, machine: Machine) -> tuple[()]:
    machine.records.append(
        Record(
            op=op,
            program=machine.program,
            message=op.text("prefix"),
            values=tuple(each.copy() for each in operands),
        )
    )
    return ()


def _nothing(op: Op, operands: Operands, machine: Machine) -> tuple[()]:
    return ()


OPS: tuple[OpDefinition, ...] = (
    OpDefinition(
        name="tt.get_program_id",
        summary="the program's number along an axis of the grid",
        rule=_axis_rule,
        meaning=_program_id,
        attributes={"axis": _AXIS},
    ),
    OpDefinition(
        name="tt.get_num_programs",
        summary="how many programs the grid has along an axis",
        rule=_axis_rule,
        meaning=_num_programs,
        attributes={"axis": _AXIS},
    ),
    OpDefinition(
        name="tt.assert",
        summary="recorded where it does not hold; the program goes on",
        rule=_condition_rule,
        meaning=_record_unless_true,
        attributes={"message": TEXT},
        effect=Effect.RECORD,
    ),
    OpDefinition(
        name="llvm.intr.assume",
        summary="recorded where it does not hold; never relied on",
        rule=_condition_rule,
        meaning=_record_unless_true,
        effect=Effect.RECORD,
    ),
    OpDefinition(
        name="tt.print",
        summary="recorded",
        rule=rules.nothing(0, 1 << 16),
        meaning=_print,
        attributes={
            "prefix": TEXT,
            "hex": OPTIONAL_FLAG,
            "isSigned": OPTIONAL_INTS,
        },
        effect=Effect.RECORD,
    ),
    OpDefinition(
        name="ttg.barrier",
        summary="nothing: the elements of a program are never apart",
        rule=rules.nothing(0),
        meaning=_nothing,
        attributes={"addrSpace": OPTIONAL_INT},
    ),
    OpDefinition(
        name="tt.grid_dependency_wait",
        summary="nothing: launches run one after another",
        rule=rules.nothing(0),
        meaning=_nothing,
    ),
    OpDefinition(
        name="tt.grid_dependency_launch_dependents",
        summary="nothing: launches run one after another",
        rule=rules.nothing(0),
        meaning=_nothing,
    ),
)

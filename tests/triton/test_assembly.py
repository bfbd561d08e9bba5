"""Inline assembly of several instructions, against what PTX says of each."""

import numpy as np
import pytest

from translators.graph.builder import Builder
from translators.graph.errors import GraphError
from translators.graph.evaluator import evaluate
from translators.graph.graph import Function, make_module, make_region
from translators.graph.types import F32, I32, PointerType, TensorType
from translators.graph.verifier import verify
from translators.triton.assembly import assembly
from translators.triton.ptx import Instruction, PtxError, instructions

N = 8
REALS = np.array([0.0, -0.0, 1.5, -2.5, 16.0, np.inf, np.nan, 3e-39], np.float32)
WHOLES = np.array([0, 1, -1, 7, -8, 2**31 - 1, -(2**31), 12345], np.int32)


def computed(text, constraints, *inputs, result=I32):
    """What comes out of a text for these arrays."""
    types = {np.dtype(np.float32): F32, np.dtype(np.int32): I32}
    elements = [types[each.dtype] for each in inputs]
    pointers = [PointerType(each) for each in (*elements, result)]
    region = make_region(pointers)
    builder = Builder(region)
    lanes = builder.value("tt.make_range", results=(TensorType((N,), I32),), start=0, end=N)

    def places(index):
        argument = region.arguments[index]
        spread = builder.value("tt.splat", argument, results=(TensorType((N,), argument.type),))
        return builder.value("tt.addptr", spread, lanes)

    loaded = [
        builder.value("tt.load", places(index), results=(TensorType((N,), element),))
        for index, element in enumerate(elements)
    ]
    (value,) = assembly(builder, text, constraints, loaded, [TensorType((N,), result)])
    builder.op("tt.store", places(len(inputs)), value)
    builder.op("tt.return")
    module = make_module([Function(name="k", body=region)], "k")
    verify(module)
    out = np.zeros(N, np.float32 if result == F32 else np.int32)
    return evaluate(module, [*inputs, out], (1, 1, 1)).arrays[-1]


def test_a_text_is_read_as_its_instructions():
    text = """{ .reg .pred %p; .reg .b32 a, t<4>; // comment; not read
        setp.gt.f32 %p, $1, 0f41700000; /* nor this; */
        @!%p add.u32 t1, $1, 0x10;
    }"""
    assert instructions(text) == [
        Instruction(opcode="setp.gt.f32", operands=("%p", "$1", "0f41700000")),
        Instruction(opcode="add.u32", operands=("t1", "$1", "0x10"), predicate="%p", negated=True),
    ]


@pytest.mark.parametrize("text", ["loop: add.s32 $0, $1, 1;", "mov.b32 w, {a, b};"])
def test_what_is_no_instruction_is_said(text):
    with pytest.raises(PtxError, match="is no instruction that is read"):
        instructions(text)


@pytest.mark.parametrize(
    ("instruction", "wanted"),
    [
        ("add.s32 $0, $1, $2;", WHOLES + WHOLES[::-1]),
        ("sub.u32 $0, $1, 5;", WHOLES - 5),
        ("mul.lo.s32 $0, $1, -3;", WHOLES * np.int32(-3)),
        ("and.b32 $0, $1, 0xFF;", WHOLES & 0xFF),
        ("or.b32 $0, $1, 0x80000000;", WHOLES | np.int32(-(2**31))),
        ("xor.b32 $0, $1, $2;", WHOLES ^ WHOLES[::-1]),
        ("not.b32 $0, $1;", ~WHOLES),
        ("shl.b32 $0, $1, 4;", WHOLES << 4),
        ("shr.s32 $0, $1, 4;", WHOLES >> 4),
        ("shr.u32 $0, $1, 4;", (WHOLES.view(np.uint32) >> 4).view(np.int32)),
        ("min.s32 $0, $1, $2;", np.minimum(WHOLES, WHOLES[::-1])),
        (
            "max.u32 $0, $1, $2;",
            np.maximum(WHOLES.view(np.uint32), WHOLES[::-1].view(np.uint32)).view(np.int32),
        ),
        ("mov.b32 $0, 7;", np.full(N, 7, np.int32)),
    ],
)
def test_instructions_of_integers(instruction, wanted):
    with np.errstate(over="ignore"):
        found = computed(instruction, "=r,r,r", WHOLES, np.ascontiguousarray(WHOLES[::-1]))
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize(
    ("compare", "wanted"),
    [
        ("gt.f32", REALS > 1),
        ("neu.f32", ~(REALS == 1)),
        ("ne.f32", (REALS != 1) & ~np.isnan(REALS)),
        ("num.f32", ~np.isnan(REALS)),
        ("leu.f32", ~(REALS > 1)),
    ],
)
def test_comparisons_choose_between_two_values(compare, wanted):
    text = f"{{ .reg .pred p; setp.{compare} p, $1, 1.0; selp.b32 $0, 5, 6, p; }}"
    found = computed(text, "=r,f", REALS)
    np.testing.assert_array_equal(found, np.where(wanted, 5, 6))


def test_predicates_combine_and_keep_what_was_there():
    text = """{ .reg .pred p, q;
        setp.lt.s32 p, $1, 0; setp.hi.u32 q, $1, 10; and.pred p, p, q; not.pred q, p;
        mov.b32 $0, $1; @p neg.f32 $0, 0f3F800000; @q add.s32 $0, $0, 1;
    }"""
    negative = (WHOLES < 0) & (WHOLES.view(np.uint32) > 10)
    minus_one = np.float32(-1).view(np.int32)
    with np.errstate(over="ignore"):
        wanted = np.where(negative, minus_one, WHOLES + 1)
    np.testing.assert_array_equal(computed(text, "=r,r", WHOLES), wanted)


def test_bits_of_one_kind_are_read_as_the_other():
    text = "and.b32 $0, $1, 0x7FFFFFFF;"
    found = computed(text, "=f,f", REALS, result=F32)
    np.testing.assert_array_equal(found.view(np.int32), np.abs(REALS).view(np.int32))


@pytest.mark.parametrize(
    ("text", "constraints", "reason"),
    [
        ("prmt.b32 $0, $1, $1, 0x1234;", "=r,r", "`prmt.b32` is not known"),
        ("add.s32 $0, t, 1;", "=r,r", "`t` is not read before it is written"),
        ("shl.b32 $0, $1, $1;", "=r,r", "by other than a number below 32"),
        ("shl.b32 $0, $1, 32;", "=r,r", "by other than a number below 32"),
        ("add.s32 $0, $0, 1;", "=r,0", "the constraint `0` is not read"),
        ("add.s32 $0, $1, 1;", "=h,h", "the constraint `=h` is not read"),
        ("@p mov.b32 $0, $1; @p mov.b32 $0, 1;", "=r,r", "`p` is no predicate that was set"),
        ("setp.gt.ftz.f32 p, $1, 1.0;", "=r,r", "`setp.gt.ftz.f32` is not known"),
        ("membar.gl;", "=r,r", "`membar.gl` is not known"),
    ],
)
def test_what_has_no_meaning_is_refused_with_the_text(text, constraints, reason):
    with pytest.raises(GraphError, match="assembly whose meaning is not known") as caught:
        computed(text, constraints, WHOLES)
    assert reason in str(caught.value)
    assert repr(text) in str(caught.value)

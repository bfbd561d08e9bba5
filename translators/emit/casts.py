"""Values as other types: converted, or the same bits."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType

from translators.emit.emission import Emission, Rule
from translators.emit.operands import already_known, not_negative, operands_of
from translators.emit.terms import PointerTerm, constant, dtype, literal, typed, unsigned
from translators.graph.graph import Op
from translators.graph.types import I1, FloatType, IntType, shape_of


def _cast(e: Emission, op: Op) -> None:
    if op.name in ("arith.extsi", "arith.extui", "arith.trunci") and already_known(e, op):
        return
    (term,) = operands_of(e, op)
    source, target = term.element, e.element(op.result)
    if op.name == "arith.sitofp" and source != I1 and term.number is not None:
        assert isinstance(target, FloatType)
        if abs(term.number) <= 1 << target.precision:
            e.put(op.result, constant(float(term.number), target, shape_of(op.result.type)))
            return
    text = typed(term)
    match op.name:
        case "arith.extsi" if source == I1:
            text = f"-({text}.astype({dtype(target)}))"
        case "arith.sitofp" | "arith.uitofp" if source == I1:
            # A product with a converted condition XLA takes for a choice, which forgets of NaN.
            one = "-1.0" if op.name == "arith.sitofp" else "1.0"
            text = f"jnp.where({text}, {dtype(target)}({one}), 0.0)"
        case "arith.extui" if source != I1 and not not_negative(e, op.operands[0]):
            if source != target:
                text = f"{text}.astype({unsigned(source)}).astype({dtype(target)})"
        case "arith.uitofp" if source != I1 and not not_negative(e, op.operands[0]):
            text = f"{text}.astype({unsigned(source)}).astype({dtype(target)})"
        case "arith.trunci" if target == I1:
            text = f"({text} & 1) != 0"
        case "arith.fptosi":
            text = f"{text}.astype({dtype(target)})"
        case "arith.fptoui":
            assert isinstance(target, IntType)
            text = f"{text}.astype({unsigned(target)}).astype({dtype(target)})"
        case "arith.truncf" | "tt.fp_to_fp":
            text = _rounded(e, op, text, source, target)
        case _ if source == target:
            e.put(op.result, term)
            return
        case _:
            text = f"{text}.astype({dtype(target)})"
    if op.name == "arith.extui" and source == target and source != I1:
        e.put(op.result, term)
        return
    e.give(op, text, [term])


def _rounded(e: Emission, op: Op, text: str, source: object, target: object) -> str:
    assert isinstance(source, FloatType)
    assert isinstance(target, FloatType)
    if op.text("rounding", "rtne") == "rtz" and target.width < source.width:
        return f"{e.writer.helper('_toward_zero')}({text}, {dtype(target)})"
    if target.width == 8 and source.width > 8:
        # The cast of JAX gives NaN, or infinity, beyond the greatest value; Triton's saturates.
        limit = literal(target.largest, source)
        text = f"jnp.clip({text}, -{limit}, {limit})"
    return f"{text}.astype({dtype(target)})"


def _bitcast(e: Emission, op: Op) -> None:
    emitted = e.found(op.operands[0])
    if isinstance(emitted, PointerTerm):
        _bitcast_pointer(e, op, emitted)
        return
    term = e.term(op.operands[0])
    target = e.element(op.result)
    if term.element == target:
        e.put(op.result, term)
    elif I1 in (term.element, target):
        text = f"({typed(term)} != 0)" if target == I1 else f"{typed(term)}.astype(jnp.int8)"
        e.give(op, text, [term])
    else:
        e.give(op, f"lax.bitcast_convert_type({typed(term)}, {dtype(target)})", [term])


def _bitcast_pointer(e: Emission, op: Op, pointer: PointerTerm) -> None:
    from translators.emit.pointers import pointee_of, same_width

    pointee = pointee_of(op.result.type)
    if not same_width(pointee, pointer.pointee):
        raise e.refuse(op, "reads an array as elements of another width")
    e.put(op.result, pointer.each(lambda each: replace(each, pointee=pointee)))


_TABLE: dict[str, Callable[[Emission, Op], None]] = {
    **dict.fromkeys(
        (
            *("arith.extsi", "arith.extui", "arith.trunci", "arith.extf", "arith.truncf"),
            *("arith.sitofp", "arith.uitofp", "arith.fptosi", "arith.fptoui", "tt.fp_to_fp"),
        ),
        _cast,
    ),
    "arith.bitcast": _bitcast,
    "tt.bitcast": _bitcast,
}

RULES: Mapping[str, Rule] = MappingProxyType(_TABLE)

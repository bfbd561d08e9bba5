"""Accesses through tensor descriptors."""

from collections.abc import Mapping
from types import MappingProxyType

from translators.access.descriptors import block_shape
from translators.access.states import Described
from translators.emit.descriptors import inside, located
from translators.emit.emission import Emission, Rule
from translators.emit.pallas.reading import loaded, steps
from translators.emit.pallas.writing import stored, updated
from translators.emit.shaping import reshaped
from translators.emit.terms import constant
from translators.graph.graph import Op
from translators.graph.types import FloatType, shape_of


def _load(e_: Emission, op: Op) -> None:
    e = steps(e_)
    access, pointer = located(e, op)
    shape = block_shape(op)
    described = e.analysis.states.get(op.operands[0])
    padding = described.padding if isinstance(described, Described) else "zero"
    real = isinstance(pointer.pointee, FloatType)
    fill = float("nan") if padding == "nan" and real else 0.0 if real else 0
    other = constant(fill, pointer.pointee, shape)
    found = loaded(e, op, pointer, shape, lambda: inside(e, op, access), other)
    e.put(op.result, reshaped(e, found, shape_of(op.result.type), op.result.name))


def _store(e_: Emission, op: Op) -> None:
    e = steps(e_)
    access, pointer = located(e, op)
    shape = block_shape(op)
    value = reshaped(e, e.term(op.operands[1]), shape)
    stored(e, op, pointer, shape, value, lambda: inside(e, op, access))


def _reduce(e_: Emission, op: Op) -> None:
    e = steps(e_)
    access, pointer = located(e, op)
    shape = block_shape(op)
    value = reshaped(e, e.term(op.operands[1]), shape)
    updated(e, op, pointer, shape, value, lambda: inside(e, op, access), op.text("kind"))


RULES: Mapping[str, Rule] = MappingProxyType(
    {
        "tt.descriptor_load": _load,
        "tt.descriptor_store": _store,
        "tt.descriptor_reduce": _reduce,
    }
)

"""Single numbers, as TPUs take them out of vectors."""

from translators.emit.emission import Emission
from translators.emit.pallas.elements.held_types import held_element
from translators.emit.terms import Term, dtype


def as_number(e: Emission, value: Term) -> Term:
    """A value of one element as a number; of a narrow type by way of one of 32 bits."""
    if value.number is not None or value.bare:
        return value
    wide = held_element(value.element, single=True)
    text = f"({value.text}).reshape(())"
    if wide != value.element:
        text = f"({value.text}).astype({dtype(wide)}).reshape(()).astype({dtype(value.element)})"
    return value.like(e.writer.assign(text), shape=(), dims=())

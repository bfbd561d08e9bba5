"""How arrays and numbers reach the kernel: as elements that TPUs have, and back."""

from dataclasses import dataclass

from translators.emit.buffers import Buffers, BufferState
from translators.emit.facts import ScalarFact
from translators.emit.terms import dtype, dtype_name
from translators.graph.types import F32, ElementType


@dataclass(slots=True)
class Carriers(Buffers):
    """The arrays, converted around the call where TPUs have no such elements."""

    def entered(self, state: BufferState) -> str:
        """An expression for what the caller gave, as the kernel sees it; empty if it is that."""
        if state.fact.dtype == "float16" and state.element == F32:
            return f"{state.name}.astype(jnp.float32)"
        return Buffers.entered(self, state)

    def left(self, state: BufferState) -> str:
        """An expression for what the caller gets back."""
        if state.fact.dtype == "float16" and state.element == F32:
            return f"{state.name}.astype(jnp.float16)"
        return Buffers.left(self, state)


def array_of(name: str, fact: ScalarFact, element: ElementType) -> str:
    """An array of one number, as the kernel sees it.

    Args:
      name: what the caller gave.
      fact: what the launch says of it.
      element: what the kernel holds it as.
    """
    text = f"jnp.array([{name}], jnp.{fact.dtype})"
    if fact.dtype == dtype_name(element):
        return text
    signed = fact.dtype.removeprefix("u")
    if signed != fact.dtype:
        text = f"{text}.astype(jnp.{signed})"
    return text if signed == dtype_name(element) else f"{text}.astype({dtype(element)})"

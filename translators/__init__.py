"""Translators from GPU kernels to TPU programs."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from translators.call.triton_call import triton_call

__all__ = ["triton_call"]


def __getattr__(name: str) -> Any:
    """Imports what needs jax and Triton when it is first asked for."""
    if name == "triton_call":
        from translators.call.triton_call import triton_call

        return triton_call
    raise AttributeError(f"module `{__name__}` has no attribute `{name}`")

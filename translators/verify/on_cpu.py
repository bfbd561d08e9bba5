"""Calls of emitted functions on the CPU, compiled."""

from collections.abc import Mapping, Sequence
from typing import Any

# XLA makes a transposed operand part of a product; of `bf16` the CPU has no such products.
FOLDING = "transpose-folding"
_MISSING = "Unsupported element type for DotThunk"


def call_on_cpu(
    function: Any,
    arrays: Sequence[Any],
    scalars: Mapping[str, float],
    mode: Mapping[str, Any],
    *,
    without: Sequence[str] = (),
) -> list[Any]:
    """The results of a function, computed.

    Args:
      function: it takes arrays by position, and the rest by name.
      arrays: its arrays.
      scalars: numbers, by name.
      mode: what else it takes, which is no number, by name.
      without: passes of XLA that are left out.
    """
    import jax

    compiled = jax.jit(function, static_argnames=tuple(mode))

    def ahead(passes: Sequence[str]) -> Any:
        lowered = compiled.lower(*arrays, **scalars, **mode)
        options = {"xla_disable_hlo_passes": ",".join(passes)}
        return jax.block_until_ready(lowered.compile(compiler_options=options)(*arrays, **scalars))

    try:
        if without:
            results = ahead(without)
        else:
            results = jax.block_until_ready(compiled(*arrays, **scalars, **mode))
    except jax.errors.JaxRuntimeError as error:
        if _MISSING not in str(error):
            raise
        results = ahead([*without, FOLDING])
    return list(results) if isinstance(results, tuple | list) else [results]

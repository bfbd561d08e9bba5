"""Calls a Triton kernel from a JAX program, on any device that JAX runs on."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from typing import Any

import jax
import numpy as np
from jax import tree_util

from translators.call.calls import Call, Grid, run
from translators.call.operands import Space
from translators.triton.driver import target
from translators.triton.launches import LaunchError


def triton_call(
    *args: Any,
    kernel: Any,
    out_shape: Any = None,
    out_type: Any = None,
    grid: Grid | Callable[[dict[str, Any]], Grid],
    name: str = "",
    custom_call_target_name: str = "triton_kernel_call",
    num_warps: int | None = None,
    num_stages: int | None = None,
    num_ctas: int | None = None,
    compute_capability: int | None = None,
    enable_fp_fusion: bool | None = None,
    backend_options: Mapping[str, Any] | None = None,
    input_output_aliases: Mapping[int, int] | None = None,
    zeroed_outputs: Sequence[int] | Callable[[dict[str, Any]], Sequence[int]] = (),
    debug: bool = False,
    serialized_metadata: bytes = b"",
    cost_estimate: Mapping[str, int] | None = None,
    has_side_effect: bool = False,
    emit: str = "auto",
    **metaparams: Any,
) -> Any:
    """Computes what a Triton kernel computes, by a translation of it that is plain JAX.

    The call of `jax_triton.triton_call`, old and new: a program changes one import. The kernel is
    translated when JAX traces the call, once for each combination of shapes, element types,
    integers, constants and grid. As what runs is plain JAX, `jax.jit`, `jax.vmap` and, where the
    mathematics allows it, `jax.grad` work on it.

    It differs from jax-triton in this:

    - Elements of an output that the kernel does not write are undefined there, and zero here.
    - What a kernel writes to an input that is neither an output nor a `Ref` is lost.
    - An autotuner takes its first valid configuration.
    - A number is of the type that jax-triton 0.4 gives it: a Python float is `float32`. Numbers
      of NumPy are read as Python's. An array without dimensions is memory, as in jax-triton, and
      where the kernel cannot take it so, the number that it holds: an integer has to be known
      while JAX traces.

    Args:
      *args: arrays, `Ref`s (which the kernel changes), numbers, tensor descriptors, or tuples of
        these, by position.
      kernel: the kernel, with its autotuners and heuristics.
      out_shape: the shape and dtype of each output, in any structure of Python's: the name that
        jax-triton used up to 0.3.
      out_type: the same, under its newer name.
      grid: programs along up to three axes, or what gives them for the constants.
      name: the name of the call in a trace of JAX.
      custom_call_target_name: has no meaning here, as there is no custom call.
      num_warps: of a GPU; told to the kernel's front end.
      num_stages: likewise.
      num_ctas: likewise.
      compute_capability: has no meaning here.
      enable_fp_fusion: told to the kernel's front end.
      backend_options: further options of Triton's; those of other GPUs are passed over.
      input_output_aliases: outputs that are inputs: the number of the input, and that of the
        output.
      zeroed_outputs: the numbers of outputs that start as zeros even where they are inputs, or
        what gives them for the constants.
      debug: prints the graph and the source that the kernel became.
      serialized_metadata: has no meaning here.
      cost_estimate: has no meaning here: XLA sees what is computed.
      has_side_effect: has no meaning here: a result that is not used need not be computed.
      emit: `jax`; `stablehlo`, to run the program as a StableHLO module; or `auto`, which is
        `jax`.
      **metaparams: the kernel's other arguments by name, and what only `grid` is told.

    Returns:
      The outputs, in the structure of `out_shape`.

    Raises:
      InputError: the call does not fit the kernel, or part of the kernel has no faithful
        translation; with the kernel's file and line. Raised while JAX traces.
    """
    outputs, structure = _outputs(out_shape, out_type)
    call = Call(
        kernel=kernel,
        args=args,
        named=metaparams,
        outputs=outputs,
        aliases=dict(input_output_aliases or {}),
        zeroed=zeroed_outputs,
        grid=grid,
        options=_options(
            backend_options or {},
            num_warps=num_warps,
            num_stages=num_stages,
            num_ctas=num_ctas,
            enable_fp_fusion=enable_fp_fusion,
        ),
    )
    with jax.named_scope(name) if name else nullcontext():
        return tree_util.tree_unflatten(structure, run(call, _emitter(emit), debug=debug))


def _outputs(out_shape: Any, out_type: Any) -> tuple[list[Space], Any]:
    """The outputs in order, and the structure that they came in."""
    if (out_shape is None) == (out_type is None):
        raise LaunchError("the outputs are given by one of `out_type` and `out_shape`")
    leaves, structure = tree_util.tree_flatten(out_type if out_shape is None else out_shape)
    spaces = [Space(shape=tuple(each.shape), dtype=np.dtype(each.dtype)) for each in leaves]
    return spaces, structure


def _options(backend_options: Mapping[str, Any], **named: Any) -> dict[str, Any]:
    """The compile options that Triton's front end takes."""
    from triton.compiler import make_backend

    given = {name: value for name, value in named.items() if value is not None}
    twice = given.keys() & backend_options.keys()
    if twice:
        raise LaunchError(f"`{min(twice)}` is given by itself and in `backend_options`")
    known = vars(make_backend(target()).parse_options({}))
    return given | {name: value for name, value in backend_options.items() if name in known}


def _emitter(emit: str) -> str:
    if emit == "pallas":
        raise LaunchError('`emit="pallas"` is not supported; `auto`, `jax` and `stablehlo` are')
    if emit not in ("auto", "jax", "stablehlo"):
        raise LaunchError(f"`emit` is `auto`, `jax` or `stablehlo`, not `{emit}`")
    return "jax" if emit == "auto" else emit

"""A kernel and a launch of it, translated: graph, accesses and emitted function."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Literal, TypeAlias

import numpy as np

from hlo_tools.errors import InputError
from translators.access.analysis import Analysis, analyze
from translators.access.states import Pointer
from translators.emit.emission import Note
from translators.emit.facts import ArgumentFact, ArrayFact, ScalarFact
from translators.emit.jax import JaxFunction
from translators.emit.kernel import emit_kernel
from translators.emit.pallas.kernel import emit_pallas_kernel
from translators.emit.persistent import with_a_program_for_each_tile
from translators.emit.scalars import data_arguments
from translators.emit.unsharing import unshared
from translators.graph.errors import GraphError
from translators.graph.graph import Module
from translators.graph.types import FloatType
from translators.reblocking import larger_blocks, loops_over_products, reblocked, refuse_unlike
from translators.specializing import specialization
from translators.triton.host_arrays import NUMPY_DTYPES
from translators.triton.kernel_graph import kernel_graph, kernel_parameters
from translators.triton.launches import (
    ArrayArgument,
    ConstantArgument,
    DescriptorArgument,
    Launch,
    ScalarArgument,
)

_READS = frozenset(
    (
        *("tt.load", "tt.atomic_load", "tt.atomic_poll"),
        *("tt.descriptor_load", "tt.descriptor_gather"),
    )
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Translation:
    """What became of a kernel.

    Attributes:
      launch: what it was specialised on.
      module: its graph.
      analysis: its accesses.
      function: the emitted function.
      emitted: the graph and the launch that it was emitted for, where these have other constants.
    """

    launch: Launch
    module: Module
    analysis: Analysis
    function: JaxFunction
    emitted: tuple[Module, Launch] | None = None

    def load(self) -> Callable[..., Any]:
        """The emitted function itself."""
        return load(self.function)


def load(function: JaxFunction) -> Callable[..., Any]:
    """Runs the emitted file and gives its function."""
    namespace: dict[str, Any] = {"__name__": function.name}
    exec(compile(function.source, f"<emitted {function.name}>", "exec"), namespace)
    return namespace[function.name]  # type: ignore[no-any-return]


Target: TypeAlias = Literal["auto", "jax", "pallas"]
"""What to write: JAX, a kernel in Pallas, or the latter where it can be."""


def translate(
    kernel: Any,
    launch: Launch,
    emit: Target = "jax",
    blocks: Mapping[str, int] = MappingProxyType({}),
    *,
    enlarge: bool = False,
) -> Translation:
    """Translates a jitted function for a launch.

    Args:
      kernel: the jitted function.
      launch: what it is specialised on.
      emit: what to write.
      blocks: how long the blocks of a kernel in Pallas are, by the name of a constant of the
        kernel or of a dimension; as suits where not given.
      enlarge: as `translate_for_tpu` takes it.

    Raises:
      InputError: part of the kernel has no faithful translation; at the kernel's line.
    """
    module = kernel_graph(kernel, launch)
    if emit == "jax":
        return translate_module(module, launch)
    return translate_for_tpu(kernel, module, launch, emit, blocks, enlarge=enlarge)


def translate_for_tpu(
    kernel: Any,
    module: Module,
    launch: Launch,
    emit: Target = "pallas",
    blocks: Mapping[str, int] = MappingProxyType({}),
    *,
    enlarge: bool = False,
) -> Translation:
    """Translates a kernel to Pallas, with blocks of the length that suits a TPU.

    Args:
      kernel: the jitted function; `None` for a kernel given as Triton IR, whose constants are
        what they are.
      module: its verified graph.
      launch: what it is specialised on.
      emit: `pallas`, or `auto`.
      blocks: as `translate` takes them.
      enlarge: whether to make constants larger that seem to be lengths of blocks, where a loop
        over products would be slow. That they are no more than that, only running the kernel
        shows: what comes out has to be verified.

    Returns:
      The translation, whose graph and launch are those of the kernel as it was launched.

    Raises:
      InputError: part of the kernel has no faithful translation; at the kernel's line.
    """
    constants = {each.name for each in launch.singles if isinstance(each, ConstantArgument)}
    asked = {name: length for name, length in blocks.items() if name in constants}
    others = {name: length for name, length in blocks.items() if name not in constants}
    if asked:
        return _reblocked(kernel, module, launch, asked, emit, others)
    if enlarge and kernel is not None and loops_over_products(module):
        for wished in larger_blocks(module, launch):
            try:
                return _reblocked(kernel, module, launch, wished, "pallas", others, alike=True)
            except InputError:
                continue
    return translate_module(module, launch, emit, others)


def _reblocked(
    kernel: Any,
    module: Module,
    launch: Launch,
    constants: Mapping[str, int],
    emit: Target,
    blocks: Mapping[str, int],
    *,
    alike: bool = False,
) -> Translation:
    graph, changed = reblocked(kernel, module, launch, constants)
    if alike:
        refuse_unlike(module, launch, graph, changed)
    translation = translate_module(graph, changed, emit, blocks)
    told = ", ".join(f"{name}={value}" for name, value in constants.items())
    note = Note(text=f"blocks of another length than the launch's: {told}")
    function = translation.function
    notes = (*function.notes, note)
    function = replace(function, notes=notes, reblocked=True)
    return replace(
        translation, launch=launch, module=module, function=function, emitted=(graph, changed)
    )


def translate_module(
    module: Module,
    launch: Launch,
    emit: Target = "jax",
    blocks: Mapping[str, int] = MappingProxyType({}),
) -> Translation:
    """Translates a verified graph, whose kernel takes what `kernel_parameters` lists.

    Raises:
      GraphError: part of the kernel has no faithful translation; at the kernel's line.
    """
    facts = argument_facts(module, launch)
    apart = unshared(module)
    analysis = analyze(apart, specialization(module, launch))
    refuse_overlaps(analysis, launch)
    aliases = {index: each.alias for index, each in enumerate(facts) if isinstance(each, ArrayFact)}
    spread = with_a_program_for_each_tile(apart, analysis, aliases)
    if spread is not None:
        apart, analysis = spread
    placed, function = _emitted(apart, analysis, facts, emit, blocks)
    return Translation(launch=launch, module=module, analysis=placed, function=function)


def _emitted(
    module: Module,
    analysis: Analysis,
    facts: list[ArgumentFact],
    emit: Target,
    blocks: Mapping[str, int],
) -> tuple[Analysis, JaxFunction]:
    if emit == "jax":
        return emit_kernel(module, analysis, facts)
    try:
        return emit_pallas_kernel(module, analysis, facts, blocks)
    except GraphError as error:
        if emit == "pallas":
            raise
        placed, function = emit_kernel(module, analysis, facts)
        line = error.location.line if error.location else 0
        note = Note(text=f"JAX in the place of Pallas: {error.message}", line=line)
        return placed, replace(function, notes=(*function.notes, note))


def refuse_overlaps(analysis: Analysis, launch: Launch) -> None:
    """Refuses a kernel that writes to memory which another argument is another view of.

    In JAX, arrays share nothing: what is written to one would not be seen in the other.

    Raises:
      GraphError: there is such an argument; at the write.
    """
    parameters = list(kernel_parameters(launch))
    arrays = {
        index: each.array if isinstance(each, DescriptorArgument) else each
        for index, each in enumerate(parameters)
        if not isinstance(each, ScalarArgument)
    }
    for access in analysis.accesses:
        if access.op.name in _READS:
            continue
        pointer = access.pointer
        written = [pointer.argument] if isinstance(pointer, Pointer) else list(arrays)
        for index in written:
            for other in arrays:
                if _overlap(arrays[index], arrays[other]):
                    raise GraphError(
                        f"`{access.op.name}` may write to `{arrays[index].name}`, of whose memory "
                        f"`{arrays[other].name}` is another view, which arrays in JAX cannot be",
                        access.op.location,
                    )


def _overlap(one: ArrayArgument, other: ArrayArgument) -> bool:
    """Whether two different views have an element in common."""
    if one.buffer != other.buffer or _view(one) == _view(other):
        return False
    return bool(np.intersect1d(_places(one), _places(other)).size)


def _places(array: ArrayArgument) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Where in memory each element lies, in elements."""
    found = np.array([array.offset], np.int64)
    for size, stride in zip(array.shape, array.strides, strict=True):
        found = np.unique(found[:, None] + np.arange(size) * stride)
    return found


def _view(array: ArrayArgument) -> tuple[object, ...]:
    return (array.buffer, array.offset, array.shape, array.strides, array.dtype)


def argument_facts(module: Module, launch: Launch) -> list[ArgumentFact]:
    """What the emitter is told of each argument.

    Raises:
      GraphError: arrays that are written overlap in another way than by being the same.
    """
    facts: list[ArgumentFact] = []
    data = data_arguments(module)
    first: dict[tuple[object, ...], int] = {}
    for index, parameter in enumerate(kernel_parameters(launch)):
        if isinstance(parameter, ScalarArgument):
            real = isinstance(module.kernel.arguments[index].type, FloatType)
            facts.append(
                ScalarFact(
                    name=parameter.name,
                    dtype=NUMPY_DTYPES[parameter.dtype].name,
                    value=parameter.value,
                    free=real or index in data,
                )
            )
            continue
        if isinstance(parameter, DescriptorArgument):
            parameter = parameter.array
        dtype = NUMPY_DTYPES.get(parameter.dtype)
        if dtype is None:
            raise GraphError(
                f"the argument `{parameter.name}` holds `{parameter.dtype}`, which JAX has not",
                module.kernel.location,
            )
        facts.append(
            ArrayFact(
                name=parameter.name,
                dtype=dtype.name,
                shape=parameter.shape,
                strides=parameter.strides,
                alias=first.setdefault(_view(parameter), index),
            )
        )
    return facts

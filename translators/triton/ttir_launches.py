"""A launch of a kernel that is given as Triton IR, where there is no Python function to bind."""

from collections.abc import Sequence

from translators.graph.graph import Module, Value
from translators.graph.types import DescriptorType, PointerType
from translators.triton.launches import (
    Argument,
    ArrayArgument,
    KernelSource,
    Launch,
    LaunchError,
    ScalarArgument,
    pair_by_name,
    scalar_argument,
)

# Triton's short spelling of a float -> MLIR's. Integers have no sign there.
_FLOATS = {
    "fp16": "f16",
    "bf16": "bf16",
    "fp32": "f32",
    "fp64": "f64",
    "fp8e4nv": "f8E4M3FN",
    "fp8e5": "f8E5M2",
    "fp8e4b8": "f8E4M3FNUZ",
    "fp8e5b16": "f8E5M2FNUZ",
    "fp8e4b15": "f8E4M3B11FNUZ",
}
_SPELLINGS = {mlir: triton for triton, mlir in _FLOATS.items()}


def bind_graph(
    module: Module, arguments: Sequence[Argument], *, grid: tuple[int, int, int], path: str
) -> Launch:
    """The launch of the kernel of a graph, its arguments named as in the Triton IR.

    Args:
      module: what `read_ttir` gave for the file.
      arguments: arrays and scalars, in any order; constants are already folded into the IR.
      grid: programs along each axis.
      path: the file, for messages.

    Raises:
      LaunchError: an argument is missing, unknown, or of another type than the kernel's.
    """
    kernel = module.kernel
    given = pair_by_name(list(arguments))
    bound: list[Argument] = []
    for index, parameter in enumerate(kernel.arguments):
        name = parameter.name or f"arg{index}"
        if name not in given:
            raise LaunchError(
                f"the kernel `{kernel.name}` is not given `{name}`, of the type `{parameter.type}`",
                path=path,
            )
        bound.append(_fitting(parameter, given.pop(name), path))
    if given:
        unknown = ", ".join(f"`{name}`" for name in given)
        raise LaunchError(f"the kernel `{kernel.name}` has no parameter {unknown}", path=path)
    line = kernel.location.line if kernel.location is not None else 1
    file = kernel.location.file if kernel.location is not None else path
    source = KernelSource(function=kernel.name, file=file, line=line)
    return Launch(kernel=source, arguments=tuple(bound), grid=grid)


def _fitting(parameter: Value, argument: Argument, path: str) -> Argument:
    wanted = parameter.type
    if isinstance(wanted, DescriptorType):
        raise LaunchError(
            f"`{argument.name}` is a descriptor, which only host code can make", path=path
        )
    if isinstance(argument, ScalarArgument) and not isinstance(wanted, PointerType):
        dtype = _SPELLINGS.get(str(wanted), str(wanted))
        unsigned = argument.dtype == dtype.replace("i", "u")
        return argument if unsigned else scalar_argument(argument.name, argument.value, dtype)
    found = f"ptr<{_mlir(argument.dtype)}>" if isinstance(argument, ArrayArgument) else "a constant"
    if found != str(wanted):
        raise LaunchError(
            f"`{argument.name}` is `{wanted}` in the Triton IR and is given `{found}`", path=path
        )
    return argument


def _mlir(dtype: str) -> str:
    return _FLOATS.get(dtype, dtype.replace("u", "i"))

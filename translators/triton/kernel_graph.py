"""A kernel and a launch of it -> a verified op graph, and what the graph's kernel takes."""

from collections.abc import Collection, Iterator
from typing import Any

from translators.graph.graph import Module
from translators.graph.verifier import verify
from translators.triton.frontend import LIBRARY_CALLS, triton_ir
from translators.triton.launches import (
    ArrayArgument,
    ConstantArgument,
    DescriptorArgument,
    Launch,
    ScalarArgument,
)
from translators.triton.ttir import read_ttir


def kernel_graph(
    kernel: Any, launch: Launch, *, library_calls: Collection[str] = LIBRARY_CALLS
) -> Module:
    """The verified graph of a jitted function specialised for a launch.

    Args:
      kernel: the jitted function.
      launch: what it is called with.
      library_calls: functions of `triton.language` to keep as calls, as `triton_ir` takes them.

    Raises:
      InputError: Triton's front end refuses the kernel, or the graph has no place for part of it;
        at the kernel's line.
    """
    module = read_ttir(triton_ir(kernel, launch, library_calls=library_calls))
    verify(module)
    return module


def kernel_parameters(
    launch: Launch,
) -> Iterator[ArrayArgument | DescriptorArgument | ScalarArgument]:
    """What each parameter of the graph's kernel stands for, in order.

    Constants are folded into the kernel. A descriptor is followed by its shape, as `i32`, and its
    strides, as `i64`.
    """
    for argument in launch.singles:
        if isinstance(argument, ConstantArgument):
            continue
        yield argument
        if isinstance(argument, DescriptorArgument):
            for axis, size in enumerate(argument.array.shape):
                name = f"{argument.name}.shape.{axis}"
                yield ScalarArgument(name=name, dtype="i32", value=size)
            for axis, stride in enumerate(argument.array.strides):
                name = f"{argument.name}.stride.{axis}"
                yield ScalarArgument(name=name, dtype="i64", value=stride)

"""What the analysis of accesses is told of a launch."""

from translators.access.launch import Buffer, Specialization
from translators.emit.scalars import data_arguments
from translators.graph.graph import Module
from translators.graph.types import IntType, element_of
from translators.triton.kernel_graph import kernel_parameters
from translators.triton.launches import ArrayArgument, DescriptorArgument, Launch


def specialization(module: Module, launch: Launch) -> Specialization:
    """What the analysis of accesses is told of a launch."""
    buffers, scalars = {}, {}
    data = data_arguments(module)
    for index, parameter in enumerate(kernel_parameters(launch)):
        if isinstance(parameter, ArrayArgument):
            buffers[index] = Buffer(
                name=parameter.name, shape=parameter.shape, strides=parameter.strides
            )
        elif isinstance(parameter, DescriptorArgument):
            buffers[index] = Buffer(
                name=parameter.name,
                shape=parameter.array.shape,
                strides=parameter.array.strides,
                padding=parameter.padding,
            )
        else:
            element = element_of(module.kernel.arguments[index].type)
            if isinstance(element, IntType) and index not in data:
                scalars[index] = element.wrap(int(parameter.value))
    return Specialization(grid=launch.grid, buffers=buffers, scalars=scalars)

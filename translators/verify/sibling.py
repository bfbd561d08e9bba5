"""The same kernel on `f32` in the place of `bf16`, which Triton's interpreter cannot hold.

A kernel takes the types of its arrays as they come. Specialised for `f32` arrays it is the same
program as for `bf16` ones, unless it names `bf16` itself.
"""

from dataclasses import replace

from translators.triton.launches import (
    Argument,
    ArrayArgument,
    ConstantArgument,
    DescriptorArgument,
    Launch,
    Single,
    TupleArgument,
    TypeConstant,
)
from translators.verify.evaluation import Case
from translators.verify.memory import Layout

_NARROW, _WIDE = "bf16", "fp32"


def sibling_launch(launch: Launch) -> Launch | None:
    """The launch with `f32` for `bf16`; `None` if it has no `bf16`."""
    arguments = tuple(_argument(each) for each in launch.arguments)
    return None if arguments == launch.arguments else replace(launch, arguments=arguments)


def sibling_case(case: Case, layout: Layout) -> Case:
    """The same numbers in the types of the sibling's layout."""
    return Case(
        title=case.title,
        storages={
            buffer: array.astype(layout.storages[buffer].dtype)
            for buffer, array in case.storages.items()
        },
        scalars=case.scalars,
    )


def _argument(argument: Argument) -> Argument:
    if isinstance(argument, TupleArgument):
        return replace(argument, items=tuple(_single(item) for item in argument.items))
    return _single(argument)


def _single(argument: Single) -> Single:
    if isinstance(argument, ArrayArgument) and argument.dtype == _NARROW:
        return replace(argument, dtype=_WIDE)
    if isinstance(argument, DescriptorArgument) and argument.array.dtype == _NARROW:
        return replace(argument, array=replace(argument.array, dtype=_WIDE))
    if isinstance(argument, ConstantArgument) and argument.value == TypeConstant(dtype=_NARROW):
        return replace(argument, value=TypeConstant(dtype=_WIDE))
    return argument

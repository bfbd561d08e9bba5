"""A kernel and the values it is called with -> a `Launch`, by the rules of Triton's own binder."""

from collections.abc import Mapping, Sequence
from typing import Any

from translators.triton.driver import target
from translators.triton.kernels import kernel_source
from translators.triton.launches import (
    Argument,
    ArrayArgument,
    ConstantArgument,
    DescriptorArgument,
    Launch,
    LaunchError,
    ScalarArgument,
    Single,
    TupleArgument,
    TypeConstant,
    canonical_dtype,
    pair_by_name,
    scalar_argument,
)


def bind(
    kernel: Any,
    arguments: Sequence[Argument],
    *,
    grid: tuple[int, int, int],
    options: Mapping[str, object] | None = None,
) -> Launch:
    """The launch of a jitted function with these arguments, in any order.

    As in Triton, a parameter annotated `tl.constexpr` and an integer that is one become constants,
    an annotated scalar has the annotated type, and a parameter not given has its default.

    Raises:
      LaunchError: an argument is missing, unknown, or not what the parameter takes; or an option
        is none.
    """
    source = kernel_source(kernel)
    given = pair_by_name(list(arguments))
    parameters = {parameter.name: parameter for parameter in kernel.params}
    for name in given:
        if name not in parameters:
            raise _refusal(source, f"the kernel `{source.function}` has no parameter `{name}`")
    bound: list[Argument] = []
    missing: list[str] = []
    for name, parameter in parameters.items():
        argument = given.get(name)
        if argument is None and parameter.has_default:
            argument = describe(parameter, parameter.default, Memories())
        if argument is None:
            missing.append(name)
            continue
        try:
            bound.append(_specialised(parameter, argument))
        except LaunchError as error:
            raise _refusal(source, error.message) from error
    if missing:
        names = ", ".join(f"`{name}`" for name in missing)
        raise _refusal(source, f"the kernel `{source.function}` is not given {names}")
    known = _option_names()
    for name in options or ():
        if name not in known:
            raise _refusal(
                source, f"`{name}` is no parameter of `{source.function}` and no option of Triton's"
            )
    return Launch(
        kernel=source,
        arguments=tuple(bound),
        grid=grid,
        options=tuple(sorted((options or {}).items())),
    )


class Memories:
    """Numbers the memory that arrays lie in, so that shared memory has one number."""

    def __init__(self) -> None:
        self._numbers: dict[int, int] = {}
        self._count = 0

    def number(self, address: int) -> int:
        """The number of the memory that starts there; empty memory has no address of its own."""
        known = self._numbers.get(address) if address else None
        if known is not None:
            return known
        self._count += 1
        if address:
            self._numbers[address] = self._count - 1
        return self._count - 1


def describe(parameter: Any, value: Any, memories: Memories) -> Argument:
    """A value that host code passes for a parameter of a kernel, as an argument.

    Raises:
      LaunchError: Triton's kernels take no such value.
    """
    import triton.language as tl

    name = parameter.name
    if isinstance(value, tl.constexpr):
        value = value.value
    if isinstance(value, tl.dtype):
        return ConstantArgument(name=name, value=TypeConstant(dtype=canonical_dtype(str(value))))
    if parameter.is_constexpr:
        return ConstantArgument(name=name, value=value)
    if isinstance(value, tuple | list):
        members = [
            _describe_one(f"{name}.{index}", member, memories) for index, member in enumerate(value)
        ]
        return TupleArgument(name=name, items=tuple(members))
    return _describe_one(name, value, memories)


def _describe_one(name: str, value: Any, memories: Memories) -> Single:
    from triton.runtime.jit import JITCallable
    from triton.tools.tensor_descriptor import TensorDescriptor

    if value is None or isinstance(value, str | JITCallable):
        return ConstantArgument(name=name, value=value)
    if isinstance(value, bool | int | float):
        return scalar_argument(name, value)
    if isinstance(value, TensorDescriptor):
        return DescriptorArgument(
            array=_array(name, value.base, value.shape, value.strides, memories),
            block_shape=tuple(int(size) for size in value.block_shape),
            padding=value.padding,
            round_to_tf32=value.round_f32_to_tf32,
        )
    if hasattr(value, "data_ptr") and hasattr(value, "dtype"):
        return _array(name, value, value.shape, value.stride(), memories)
    raise LaunchError(f"the argument `{name}` is of the type `{type(value).__name__}`")


def _array(
    name: str, value: Any, shape: Sequence[int], strides: Sequence[int], memories: Memories
) -> ArrayArgument:
    owner = value
    while not hasattr(owner, "untyped_storage"):  # `triton.reinterpret` wraps a tensor
        owner = owner.base
    start = owner.untyped_storage().data_ptr()
    return ArrayArgument(
        name=name,
        dtype=canonical_dtype(str(value.dtype)),
        shape=tuple(int(size) for size in shape),
        strides=tuple(int(stride) for stride in strides),
        buffer=memories.number(start),
        offset=(value.data_ptr() - start) // owner.element_size() if start else 0,
    )


def _specialised(parameter: Any, argument: Argument) -> Argument:
    if parameter.is_constexpr:
        return ConstantArgument(name=argument.name, value=_constant(argument))
    if isinstance(argument, TupleArgument):
        items = tuple(_specialised_one(parameter, item) for item in argument.items)
        return TupleArgument(name=argument.name, items=items)
    return _specialised_one(parameter, argument)


def _specialised_one(parameter: Any, argument: Single) -> Single:
    name, annotated = argument.name, parameter.annotation_type
    if isinstance(argument, ArrayArgument) and annotated.startswith("*"):
        wanted = canonical_dtype(annotated.removeprefix("*").removeprefix("k"))
        if wanted != argument.dtype:
            raise LaunchError(
                f"the parameter `{name}` points to `{wanted}` and is given `{argument.dtype}`"
            )
    if not isinstance(argument, ScalarArgument):
        return argument
    if annotated and not annotated.startswith("*"):
        return scalar_argument(name, argument.value, canonical_dtype(annotated))
    is_integer = not isinstance(argument.value, bool | float)
    if is_integer and argument.value == 1 and not parameter.do_not_specialize:
        return ConstantArgument(name=name, value=1)
    return argument


def _constant(argument: Argument) -> object:
    if isinstance(argument, TupleArgument):
        return tuple(_constant(item) for item in argument.items)
    if isinstance(argument, ArrayArgument | DescriptorArgument):
        raise LaunchError(f"the parameter `{argument.name}` is a constexpr and is given an array")
    return argument.value


def _option_names() -> set[str]:
    """The compile options that Triton takes with a launch."""
    from triton.compiler import make_backend

    return set(vars(make_backend(target()).parse_options({})))


def _refusal(source: Any, message: str) -> LaunchError:
    return LaunchError(message, path=source.file, line=source.line)

"""Launches as a person writes them on the command line."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from translators.triton.launches import (
    Argument,
    ArrayArgument,
    ConstantArgument,
    LaunchError,
    ScalarArgument,
    TypeConstant,
    canonical_dtype,
    grid_of_three,
    row_major_strides,
    scalar_argument,
)

_ARRAY = re.compile(r"(\w+)\[([\d,\s]*)\](?::\[([-\d,\s]*)\])?")
_NAME = re.compile(r"[A-Za-z_]\w*")


def parse_argument(text: str, *, buffer: int) -> ArrayArgument | ScalarArgument | ConstantArgument:
    """Reads `name=value`: an array, another argument's memory, or a number.

    `x=f32[4,8]` is a row-major array, `x=f32[4,8]:[1,4]` one with those strides in elements,
    `n=1000` or `n=1000:i64` an integer, `eps=1e-5` a float and `flag=true` a boolean.

    Args:
      text: what the person wrote.
      buffer: the number of the memory that an array is given.

    Raises:
      LaunchError: the text is none of these.
    """
    name, value = _split(text)
    array = _ARRAY.fullmatch(value)
    if array:
        return _array(name, *array.groups(), buffer=buffer)
    number, _, dtype = value.partition(":")
    parsed = parse_value(number)
    if parsed is None:
        return ConstantArgument(name=name, value=None)
    if not isinstance(parsed, int | float):
        raise LaunchError(
            f"`{text}` gives no array such as `f32[4,8]`, number, `true`, `false` or `none`"
        )
    return scalar_argument(name, parsed, canonical_dtype(dtype) if dtype else None)


def parse_constant(text: str) -> ConstantArgument:
    """Reads `NAME=value` of a constexpr.

    The value is read as `parse_value` does.

    Raises:
      LaunchError: there is no name or no value.
    """
    name, value = _split(text)
    return ConstantArgument(name=name, value=parse_value(value))


def parse_value(text: str) -> object:
    """Reads a value: an integer, float, `true`, `false`, `none`, or a type such as `tl.float32`.

    Anything else, and anything in quotes, is a string.

    Raises:
      LaunchError: there is no such type.
    """
    words: dict[str, object] = {"true": True, "false": False, "none": None}
    if text.lower() in words:
        return words[text.lower()]
    if len(text) >= 2 and text[0] == text[-1] and text[0] in "\"'":
        return text[1:-1]
    if text.startswith("tl."):
        return TypeConstant(dtype=canonical_dtype(text))
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def parse_grid(text: str) -> tuple[int, int, int]:
    """Reads `4`, `4,2` or `4,2,1`: programs along each axis.

    Raises:
      LaunchError: the text is not one to three positive integers.
    """
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdecimal() for part in parts):
        raise LaunchError(f"the grid `{text}` is not one to three positive integers")
    return grid_of_three(tuple(int(part) for part in parts))


def share_memory(
    arguments: Iterable[Argument], groups: Sequence[Sequence[str]]
) -> Iterator[Argument]:
    """The arguments, those named in one group placed in one memory.

    Raises:
      LaunchError: a name in a group is no array argument.
    """
    arguments = list(arguments)
    buffers = {item.name: item.buffer for item in arguments if isinstance(item, ArrayArgument)}
    for group in groups:
        for name in group:
            if name not in buffers:
                raise LaunchError(f"`{name}` is no array argument, so it shares no memory")
            buffers[name] = buffers[group[0]]
    for argument in arguments:
        if isinstance(argument, ArrayArgument):
            yield replace(argument, buffer=buffers[argument.name])
        else:
            yield argument


def _split(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    name, value = name.strip(), value.strip()
    if not equals or not value or not _NAME.fullmatch(name):
        raise LaunchError(f"`{text}` is not of the form `name=value`")
    return name, value


def _array(
    name: str, dtype: str, shape_text: str, strides_text: str | None, *, buffer: int
) -> ArrayArgument:
    shape = _integers(shape_text)
    strides = _integers(strides_text) if strides_text is not None else row_major_strides(shape)
    if len(strides) != len(shape):
        raise LaunchError(f"`{name}` has {len(shape)} dimensions and {len(strides)} strides")
    return ArrayArgument(
        name=name, dtype=canonical_dtype(dtype), shape=shape, strides=strides, buffer=buffer
    )


def _integers(text: str) -> tuple[int, ...]:
    parts = [part.strip() for part in text.split(",")] if text.strip() else []
    if not all(re.fullmatch(r"-?\d+", part) for part in parts):
        raise LaunchError(f"`{text}` is no list of integers")
    return tuple(int(part) for part in parts)

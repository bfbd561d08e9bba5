"""Calls of host functions as a person writes them: `norm(f16[151,1000], [1000], torch.float16)`.

A value is an array as `parse_argument` reads it, a number, `true`, `false`, `none`, a string in
quotes, an element type, or a list or tuple of values. Nothing that is written becomes code.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from translators.triton.element_types import language_dtypes
from translators.triton.host_arrays import example_array, host_dtype
from translators.triton.launch_text import parse_argument, parse_value
from translators.triton.launches import ArrayArgument, LaunchError, TypeConstant, canonical_dtype

_CALL = re.compile(r"\s*([A-Za-z_][\w.]*)\s*\((.*)\)\s*", re.DOTALL)
_TOKEN = re.compile(
    r"""\s*(?:
      (?P<array>\w+\[[\d,\s]*\](?::\[[-\d,\s]*\])?)
    | (?P<string>'[^']*'|"[^"]*")
    | (?P<name>[A-Za-z_]\w*)\s*=
    | (?P<mark>[\[\](),])
    | (?P<word>[^\s,()\[\]'"=]+)
    )\s*""",
    re.VERBOSE,
)
_CLOSING = {"(": ")", "[": "]"}
_VALUES = (
    "array such as `f32[4,8]`, number, string in quotes, element type such as `torch.float16`, "
    "list, tuple, `true`, `false` or `none`"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class HostCall:
    """A call of a function in a person's file.

    Attributes:
      function: its name, with dots for what lies in a class.
      positional: values given by position.
      named: values given by name.
    """

    function: str
    positional: tuple[Any, ...]
    named: Mapping[str, Any]


def parse_call(text: str, rng: np.random.Generator) -> HostCall:
    """The call, with an example array for each array in it.

    Element types are torch's where torch is installed and they are not written `tl.float32`.

    Args:
      text: what the person wrote.
      rng: what the elements of arrays are drawn from.

    Raises:
      LaunchError: the text is no call, or a value is none that can be given.
    """
    match = _CALL.fullmatch(text)
    if match is None:
        raise LaunchError(f"`{text}` is not a call such as `add(f32[1000], f32[1000])`")
    arguments = _Reader(text=text, rng=rng).read(match[2])
    named = [(name, value) for name, value in arguments if name]
    for index, (name, _) in enumerate(named):
        if name in dict(named[:index]):
            raise LaunchError(f"`{text}` gives `{name}` twice")
    if any(name for name, _ in arguments[: len(arguments) - len(named)]):
        raise LaunchError(f"`{text}` gives a value without a name after one with a name")
    return HostCall(
        function=match[1],
        positional=tuple(value for name, value in arguments if not name),
        named=dict(named),
    )


@dataclass(slots=True, kw_only=True)
class _Frame:
    """A bracket that is not closed yet.

    Attributes:
      opened: the bracket; empty around the arguments as a whole.
      items: what is in it, by name where there is one.
      pending: the name before the value to come.
      full: whether a value stands behind the last comma.
      comma: whether there is a comma in it.
    """

    opened: str = ""
    items: list[tuple[str, Any]] = field(default_factory=list)
    pending: str = ""
    full: bool = False
    comma: bool = False

    def add(self, value: Any) -> None:
        self.items.append((self.pending, value))
        self.pending, self.full = "", True

    @property
    def value(self) -> Any:
        """As Python has it: one value in parentheses, without a comma, is no tuple."""
        values = [value for _, value in self.items]
        if self.opened == "[":
            return values
        return values[0] if self.full and not self.comma else tuple(values)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reader:
    """Reads the arguments of one call; open brackets are on a stack."""

    text: str
    rng: np.random.Generator

    def read(self, arguments: str) -> list[tuple[str, Any]]:
        frames = [_Frame()]
        place = 0
        while place < len(arguments):
            token = _TOKEN.match(arguments, place)
            if token is None:
                if not arguments[place:].strip():
                    break
                raise self._unreadable(arguments, place)
            fits = (
                self._mark(token["mark"], frames) if token["mark"] else self._value(token, frames)
            )
            if not fits:
                raise self._unreadable(arguments, place)
            place = token.end()
        if len(frames) > 1 or frames[-1].pending:
            raise self._unreadable(arguments, len(arguments))
        return frames[0].items

    def _mark(self, mark: str, frames: list[_Frame]) -> bool:
        """Takes a comma or a bracket; says whether it may stand there."""
        frame = frames[-1]
        if mark == ",":
            fits = frame.full
            frame.full, frame.comma = False, True
            return fits
        if mark in _CLOSING:
            frames.append(_Frame(opened=mark))
            return not frame.full
        if mark != _CLOSING.get(frame.opened) or frame.pending:
            return False
        frames.pop()
        frames[-1].add(frame.value)
        return True

    def _value(self, token: re.Match[str], frames: list[_Frame]) -> bool:
        """Takes a name or a value; says whether it may stand there."""
        frame = frames[-1]
        if frame.full:
            return False
        if token["name"]:
            fits = len(frames) == 1 and not frame.pending
            frame.pending = token["name"]
            return fits
        if token["string"]:
            frame.add(token["string"][1:-1])
        elif token["array"]:
            frame.add(self._array(token["array"]))
        else:
            frame.add(_word(token["word"]))
        return True

    def _array(self, text: str) -> Any:
        try:
            argument = parse_argument(f"array={text}", buffer=0)
        except LaunchError as error:
            raise LaunchError(f"`{text}`: {error.message}") from error
        assert isinstance(argument, ArrayArgument)
        return example_array(argument, self.rng)

    def _unreadable(self, arguments: str, place: int) -> LaunchError:
        rest = arguments[place:].strip()
        where = f"from `{rest}` on" if rest else "at its end"
        return LaunchError(
            f"`{self.text}` cannot be read {where}: between commas there is one {_VALUES}"
        )


def _word(text: str) -> Any:
    """A number, a constant or an element type."""
    value = parse_value(text)
    if isinstance(value, TypeConstant):
        return language_dtypes()[value.dtype]
    if not isinstance(value, str):
        return value
    try:
        dtype = canonical_dtype(text)
    except LaunchError as error:
        raise LaunchError(f"`{text}` is no {_VALUES}") from error
    return host_dtype(dtype)

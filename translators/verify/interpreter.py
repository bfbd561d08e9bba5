"""Launches in Triton's own interpreter, in a process of its own that serves one after another.

To interpret, Triton's language is patched, and a kernel that leaves its memory can end the process:
hence a process of its own. It loads the kernel's file, as any use of the kernel does.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from translators.graph.numerics import Array
from translators.triton.launches import (
    Argument,
    ArrayArgument,
    ConstantArgument,
    DescriptorArgument,
    ScalarArgument,
    TupleArgument,
    TypeConstant,
)
from translators.verify.errors import VerificationError
from translators.verify.evaluation import Case
from translators.verify.interpreter_messages import (
    ArrayValue,
    DescriptorValue,
    FunctionReference,
    Request,
    ScalarValue,
    TypeValue,
    reference_to,
)
from translators.verify.memory import Layout
from translators.verify.processes import NoReplyError, Worker

_PLAIN = (bool, int, float, str, type(None))


class NoOracleError(VerificationError):
    """A launch that the interpreter cannot run, with the reason."""


class Interpreter:
    """Triton's interpreter; a context manager, which ends the process."""

    def __init__(self) -> None:
        self._worker = Worker(
            "translators.verify.interpreter_worker",
            "the interpreter's process",
            {"TRITON_INTERPRET": "0"},
        )

    def __enter__(self) -> "Interpreter":
        return self

    def __exit__(self, *error: object) -> None:
        self._worker.close()

    def run(self, kernel: Any, layout: Layout, case: Case, seconds: float) -> dict[str, Array]:
        """What every array argument holds after the launch, row-major, by name.

        Args:
          kernel: the jitted function.
          layout: that of the launch.
          case: what is in memory.
          seconds: how long it may take.

        Raises:
          NoOracleError: the interpreter cannot run the launch, or not in that time.
        """
        try:
            reply = self._worker.ask(_request(kernel, layout, case), seconds)
        except NoReplyError as error:
            raise NoOracleError(error.message) from error
        if reply.problem:
            raise NoOracleError(reply.problem)
        after = {
            buffer: np.frombuffer(data, layout.storages[buffer].dtype).copy()
            for buffer, data in reply.storages.items()
        }
        return layout.arrays(after)


def _request(kernel: Any, layout: Layout, case: Case) -> Request:
    launch = layout.launch
    return Request(
        kernel=_reference(kernel),
        values={each.name: _value(each, layout, case.scalars) for each in launch.arguments},
        storages={
            buffer: (array.dtype.name, array.tobytes()) for buffer, array in case.storages.items()
        },
        grid=launch.grid,
    )


def _reference(function: Any) -> FunctionReference:
    name = function.fn.__qualname__
    if "<locals>" in name:
        raise NoOracleError(f"`{name}` is defined inside a function, where no other process has it")
    return reference_to(function.fn)


def _value(argument: Argument, layout: Layout, scalars: Mapping[str, float]) -> Any:
    if isinstance(argument, TupleArgument):
        return tuple(_value(item, layout, scalars) for item in argument.items)
    if isinstance(argument, ArrayArgument):
        return _array(argument, layout)
    if isinstance(argument, DescriptorArgument):
        return DescriptorValue(
            array=_array(argument.array, layout),
            block_shape=argument.block_shape,
            padding=argument.padding,
        )
    if isinstance(argument, ScalarArgument):
        value = scalars.get(argument.name, argument.value)
        return ScalarValue(dtype=argument.dtype, value=value)
    assert isinstance(argument, ConstantArgument)
    return _constant(argument.name, argument.value)


def _constant(name: str, value: object) -> Any:
    if isinstance(value, TypeConstant):
        return TypeValue(dtype=value.dtype)
    if isinstance(value, _PLAIN):
        return value
    if isinstance(value, tuple):
        return tuple(_constant(name, each) for each in value)
    if hasattr(value, "fn"):
        return _reference(value)
    raise NoOracleError(
        f"the constant `{name}` is a `{type(value).__name__}`, which goes to no other process"
    )


def _array(array: ArrayArgument, layout: Layout) -> ArrayValue:
    view = layout.views[array.name]
    return ArrayValue(
        buffer=array.buffer, offset=view.offset, shape=array.shape, strides=array.strides
    )

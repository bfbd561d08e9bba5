"""Launches in Triton's own interpreter, in a process of its own that serves one after another.

To interpret, Triton's language is patched, and a kernel that leaves its memory can end the process:
hence a process of its own. It loads the kernel's file, as any use of the kernel does.
"""

import os
import select
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
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
    receive,
    reference_to,
    send,
)
from translators.verify.memory import Layout

_ROOT = Path(__file__).resolve().parents[2]
_PLAIN = (bool, int, float, str, type(None))


class NoOracleError(VerificationError):
    """A launch that the interpreter cannot run, with the reason."""


class Interpreter:
    """Triton's interpreter; a context manager, which ends the process."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> "Interpreter":
        return self

    def __exit__(self, *error: object) -> None:
        self._end()

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
        process = self._started()
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            send(process.stdin, _request(kernel, layout, case))
        except BrokenPipeError as error:
            self._end()
            raise NoOracleError("the interpreter's process died") from error
        ready, _, _ = select.select([process.stdout], [], [], seconds)
        reply = receive(process.stdout) if ready else None
        if reply is None:
            self._end()
            raise NoOracleError(
                "the interpreter's process died" if ready else f"it takes more than {seconds:.0f} s"
            )
        if reply.problem:
            raise NoOracleError(reply.problem)
        after = {
            buffer: np.frombuffer(data, layout.storages[buffer].dtype).copy()
            for buffer, data in reply.storages.items()
        }
        return layout.arrays(after)

    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is None or self._process.poll() is not None:
            # What a file imports is found where this process finds it.
            paths = [str(_ROOT), *sys.path]
            environment = {
                **os.environ,
                "PYTHONPATH": os.pathsep.join(dict.fromkeys(filter(None, paths))),
                "TRITON_INTERPRET": "0",
            }
            self._process = subprocess.Popen(
                [sys.executable, "-m", "translators.verify.interpreter_worker"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=environment,
            )
        return self._process

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                stream.close()


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

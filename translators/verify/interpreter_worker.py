"""Serves launches in Triton's interpreter; a process of its own, as Triton chooses at import.

    python -m translators.verify.interpreter_worker

It serves `interpreter.py`, which starts it. What kernels print goes to the standard error.

Files are loaded as for compiling, because some do not load otherwise: what they wrap around their
kernels expects compiled ones. Of each kernel the interpreter is then given the Python function.
"""

import importlib
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from hlo_tools.errors import InputError
from translators.graph.numerics import Array
from translators.triton.host_code import HostCode
from translators.triton.launches import canonical_dtype
from translators.verify.interpreter_messages import (
    ArrayValue,
    DescriptorValue,
    FunctionReference,
    Reply,
    Request,
    ScalarValue,
    TypeValue,
    reference_to,
)
from translators.verify.processes import Channel


def main() -> None:
    """Serves requests until there are no more."""
    channel = Channel()
    with _interpreting() as worker:
        channel.serve(worker.reply)


@contextmanager
def _interpreting() -> Iterator["_Worker"]:
    """A worker, while kernels that call one another interpret one another."""
    from triton.runtime import interpreter
    from triton.runtime.jit import JITFunction

    from translators.triton.block_pointers import block_pointers
    from translators.verify.interpreter_syntax import triton_syntax

    functions: dict[FunctionReference, Callable[..., Any]] = {}
    make = JITFunction.__init__

    def init(jitted: Any, function: Any, *args: Any, **kwargs: Any) -> None:
        functions[reference_to(function)] = function
        make(jitted, function, *args, **kwargs)

    def call(jitted: Any, *args: Any, **kwargs: Any) -> Any:
        # As `InterpretedFunction.__call__` does, which leaves the language patched behind it.
        scope = interpreter._patch_lang(jitted.fn)
        try:
            return interpreter.InterpretedFunction(jitted.fn).rewrite()(*args, **kwargs)
        finally:
            scope.restore()

    with (
        mock.patch.object(JITFunction, "__init__", init),
        mock.patch.object(JITFunction, "__call__", call),
        triton_syntax(),
        block_pointers(),
    ):
        yield _Worker(functions)


class _Worker:
    """Runs launches.

    Args:
      functions: those that were made kernels, as files are loaded.
    """

    def __init__(self, functions: Mapping[FunctionReference, Callable[..., Any]]) -> None:
        self._functions = functions

    def reply(self, request: Request) -> Reply:
        """What becomes of a launch."""
        try:
            with HostCode(request.kernel.file, "Triton's interpreter fails"):
                storages = self._run(request)
        except InputError as error:
            return Reply(storages={}, problem=error.message)
        return Reply(storages={buffer: array.tobytes() for buffer, array in storages.items()})

    def _run(self, request: Request) -> dict[int, Array]:
        from triton.runtime.interpreter import InterpretedFunction

        storages = {
            buffer: np.frombuffer(data, np.dtype(name)).copy()
            for buffer, (name, data) in request.storages.items()
        }
        kernel = self._function(request.kernel)
        values = {name: self._live(value, storages) for name, value in request.values.items()}
        # Triton asks now and then whether it interprets.
        with mock.patch.dict(os.environ, TRITON_INTERPRET="1"):
            InterpretedFunction(kernel)[request.grid](**values)
        return storages

    def _function(self, reference: FunctionReference) -> Callable[..., Any]:
        """The Python function of a kernel, whose file is loaded without running any kernel.

        Raises:
          InputError: the file cannot be loaded, or makes no such kernel.
        """
        from translators.triton.loading import load_file

        if reference not in self._functions:
            load_file(Path(reference.file))
        if reference not in self._functions:
            raise InputError(f"`{reference.name}` is not made when its file is loaded")
        return self._functions[reference]

    def _live(self, value: Any, storages: Mapping[int, Array]) -> Any:
        """An argument as the interpreter takes it."""
        from triton.runtime.interpreter import InterpretedFunction, TensorHandle, _get_np_dtype
        from triton.tools.tensor_descriptor import TensorDescriptor

        if isinstance(value, ArrayValue):
            return _array(value, storages)
        if isinstance(value, DescriptorValue):
            array = value.array
            return TensorDescriptor(
                _array(array, storages),
                list(array.shape),
                list(array.strides),
                list(value.block_shape),
                value.padding,
            )
        if isinstance(value, ScalarValue):
            # A number alone would get the type that its value suggests, not its parameter's.
            dtype = _type(value.dtype)
            handle = TensorHandle(np.array([value.value], _get_np_dtype(dtype)), dtype)
            return importlib.import_module("triton.language").tensor(handle, dtype)
        if isinstance(value, TypeValue):
            return _type(value.dtype)
        if isinstance(value, FunctionReference):
            return InterpretedFunction(self._function(value))
        if isinstance(value, tuple):
            return tuple(self._live(each, storages) for each in value)
        return value


def _type(dtype: str) -> Any:
    """The type of `triton.language` with that short spelling."""
    import triton.language as tl

    return next(
        each
        for each in vars(tl).values()
        if type(each) is tl.dtype and str(each) != "void" and canonical_dtype(str(each)) == dtype
    )


def _array(value: ArrayValue, storages: Mapping[int, Array]) -> Any:
    from translators.triton.host_arrays import HostStorage

    storage = HostStorage(storages[value.buffer])
    return storage.array(value.offset, value.shape, value.strides)


if __name__ == "__main__":
    main()

"""Triton's interpreter in a process of its own, which serves many launches.

The interpreter is chosen when Triton is imported, so that it cannot share a process with the
front end. As a program this file is the server: it reads pickled launches from standard input and
writes what the memories hold, or the error's text, to standard output.
"""

import os
import pickle
import signal
import struct
import subprocess
import sys
import traceback
from pathlib import Path
from typing import Any

from launch_case import Case, Memories, scalars_of, strided

ROOT = Path(__file__).resolve().parents[2]
SECONDS = 60


class InterpreterError(AssertionError):
    """What went wrong in the interpreter, as it says it."""


class Interpreter:
    """A server, started when first needed."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def run(self, case: Case) -> list[Any]:
        """What the memories hold after a case's launch.

        Raises:
          InterpreterError: the kernel raises, or does not end.
        """
        memories = Memories(case.arrays)
        arrays = {name: memories.argument(name) for name in case.arrays}
        request = {
            "file": str(case.file),
            "kernel": case.kernel,
            "grid": case.grid,
            "memories": memories.flat,
            "arrays": {
                name: (each.buffer, each.offset, each.shape, each.strides)
                for name, each in arrays.items()
            },
            "descriptors": {
                name: (block.shape, block.padding) for name, block in case.descriptors.items()
            },
            "scalars": scalars_of(case),
            "constants": dict(case.constants),
        }
        _write(self._started().stdin, request)
        answer = _read(self._started().stdout)
        if isinstance(answer, str):
            raise InterpreterError(answer)
        assert isinstance(answer, list), "the interpreter's process has ended"
        return answer

    def close(self) -> None:
        """Ends the server."""
        if self._process is not None:
            assert self._process.stdin is not None
            self._process.stdin.close()
            self._process.wait()
            self._process = None

    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            environment = {**os.environ, "PYTHONPATH": str(ROOT), "TRITON_INTERPRET": "1"}
            self._process = subprocess.Popen(
                [sys.executable, __file__],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=environment,
            )
        return self._process


def _write(stream: Any, value: Any) -> None:
    data = pickle.dumps(value)
    stream.write(struct.pack("<Q", len(data)) + data)
    stream.flush()


def _read(stream: Any) -> Any:
    """The next value; `None` at the end."""
    head = stream.read(8)
    return pickle.loads(stream.read(struct.unpack("<Q", head)[0])) if head else None


def _serve() -> None:
    requests, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what kernels print is no answer
    signal.signal(signal.SIGALRM, _expire)
    modules: dict[str, Any] = {}
    while (request := _read(requests)) is not None:
        signal.alarm(SECONDS)
        try:
            answer: Any = _run(request, modules)
        except Exception:  # whatever a kernel raises is the answer
            answer = traceback.format_exc()
        signal.alarm(0)
        _write(answers, answer)


def _expire(number: int, frame: Any) -> None:
    raise TimeoutError(f"the kernel has run for {SECONDS} seconds")


def _run(request: dict[str, Any], modules: dict[str, Any]) -> list[Any]:
    import importlib.util

    import triton.language as tl
    from triton.tools.tensor_descriptor import TensorDescriptor

    from translators.triton.host_arrays import HostArray

    file = request["file"]
    if file not in modules:
        directory = str(Path(file).parent)
        if directory not in sys.path:
            sys.path.insert(0, directory)
        spec = importlib.util.spec_from_file_location(Path(file).stem, file)
        assert spec is not None and spec.loader is not None
        modules[file] = importlib.util.module_from_spec(spec)
        sys.modules[Path(file).stem] = modules[file]
        spec.loader.exec_module(modules[file])
    memories = request["memories"]
    given: dict[str, Any] = {}
    for name, (buffer, offset, shape, strides) in request["arrays"].items():
        memory = memories[buffer]
        steps = tuple(stride * memory.itemsize for stride in strides)
        given[name] = HostArray(strided(memory, offset, shape, steps), memory)
        if name in request["descriptors"]:
            block, padding = request["descriptors"][name]
            given[name] = TensorDescriptor(
                given[name], list(shape), list(strides), list(block), padding
            )
    given |= request["scalars"]
    for name, value in request["constants"].items():
        is_type = isinstance(value, str) and value.startswith("tl.")
        given[name] = getattr(tl, value.removeprefix("tl.")) if is_type else value
    getattr(modules[file], request["kernel"])[tuple(request["grid"])](**given)
    return list(memories)


if __name__ == "__main__":
    _serve()

"""Processes of our own that answer requests, one after another, for as long as they are needed.

What may hang, end its process, or change how a library behaves runs in one of them. Messages are
pickled, with their length before them, between two processes of one program.
"""

import os
import pickle
import select
import signal
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from types import MappingProxyType
from typing import IO, Any

from translators.verify.errors import VerificationError

_ROOT = Path(__file__).resolve().parents[2]
_LENGTH = struct.Struct("<Q")
_READY = "ready"
# Importing JAX takes a second, and many on a machine that does much else.
_START_SECONDS = 60.0


class NoReplyError(VerificationError):
    """A request that was not answered, with the reason as a clause.

    Args:
      message: the reason.
      died: whether the process ended; else it took too long.
    """

    def __init__(self, message: str, *, died: bool) -> None:
        super().__init__(message)
        self.died = died


class Worker:
    """A process that answers requests; a context manager, which ends it.

    It is started when it is first asked, and again when it is asked after it ended.

    Args:
      module: what it runs; its `main` serves with a `Channel`.
      title: what the process is, for messages.
      environment: variables that differ from those of this process.
    """

    def __init__(
        self, module: str, title: str, environment: Mapping[str, str] = MappingProxyType({})
    ) -> None:
        self._module = module
        self._title = title
        self._environment = environment
        self._process: subprocess.Popen[bytes] | None = None
        self._resources = ExitStack()
        self._closing = False
        self._thread = ThreadPoolExecutor(max_workers=1)

    def __enter__(self) -> "Worker":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def ask(self, request: Any, seconds: float) -> Any:
        """The reply to a request.

        Args:
          request: what the process takes.
          seconds: how long it may take, beside the start of the process, which is ended if it
            takes longer.

        Raises:
          NoReplyError: there is none.
        """
        process = self._started()
        assert process.stdin is not None
        # A process that has ended gives no reply either.
        with suppress(BrokenPipeError):
            send(process.stdin, request)
        return self._heard(process, seconds)

    def begin(self, requests: Sequence[Any], seconds: float) -> Future[list[Any]]:
        """Asks one request after another, while the caller does something else.

        Args:
          requests: what the process takes.
          seconds: how long all of them may take.

        Returns:
          What will be the replies, a `NoReplyError` in the place of each that there is not.
        """
        return self._thread.submit(self._replies, requests, seconds)

    def close(self) -> None:
        """Ends the process, if there is one, and what was begun."""
        self._closing = True
        if self._process is not None:
            self._process.kill()
        self._thread.shutdown(wait=True, cancel_futures=True)
        self._end()

    def _replies(self, requests: Sequence[Any], seconds: float) -> list[Any]:
        end = time.monotonic() + seconds
        found = []
        for request in requests:
            try:
                found.append(self.ask(request, max(0.0, end - time.monotonic())))
            except NoReplyError as error:
                found.append(error)
        return found

    def _end(self) -> None:
        self._process = None
        self._resources.close()

    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is None or self._process.poll() is not None:
            self._end()
            running = _running(self._module, self._environment)
            self._process, self._errors = self._resources.enter_context(running)
            if self._closing:  # meanwhile, by another thread
                self._process.kill()
            self._heard(self._process, _START_SECONDS)
        return self._process

    def _heard(self, process: subprocess.Popen[bytes], seconds: float) -> Any:
        """What the process says next."""
        assert process.stdout is not None
        ready, _, _ = select.select([process.stdout], [], [], seconds)
        message = receive(process.stdout) if ready else None
        if message is None:
            last = self._last_words(process) if ready else ""
            self._end()
            if not ready:
                raise NoReplyError(f"it takes more than {seconds:.0f} s", died=False)
            raise NoReplyError(f"{self._title} died{last}", died=True)
        return message

    def _last_words(self, process: subprocess.Popen[bytes]) -> str:
        """How a process ended, and by which line a library says why, as the end of a clause."""
        code = process.wait()
        how = f" of {signal.Signals(-code).name}" if code < 0 else f" with the status {code}"
        self._errors.seek(0)
        for line in self._errors.read().decode(errors="replace").splitlines():
            _, found, reason = line.partition("Check failed: ")
            if found:
                return f"{how}: {reason.strip()}"
        return how


@contextmanager
def _running(
    module: str, environment: Mapping[str, str]
) -> Iterator[tuple[subprocess.Popen[bytes], IO[bytes]]]:
    """A process that runs a module, and what it writes to the standard error."""
    # What a file imports is found where this process finds it.
    paths = dict.fromkeys([str(_ROOT), *filter(None, sys.path)])
    with tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(
            [sys.executable, "-m", module],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(paths), **environment},
        )
        try:
            yield process, errors
        finally:
            process.kill()
            process.wait()
            for stream in (process.stdin, process.stdout):
                assert stream is not None
                with suppress(BrokenPipeError):
                    stream.close()


class Channel:
    """The other end of a `Worker`: this process's standard input and output.

    What is printed from now on goes to the standard error.
    """

    def __init__(self) -> None:
        self._requests = os.fdopen(os.dup(0), "rb")
        self._replies = os.fdopen(os.dup(1), "wb")
        os.dup2(2, 1)

    def serve(self, answer: Callable[[Any], Any]) -> None:
        """Says that the process is ready, and answers requests until there are no more."""
        send(self._replies, _READY)
        while (request := receive(self._requests)) is not None:
            send(self._replies, answer(request))


def send(stream: IO[bytes], message: Any) -> None:
    """Writes a message."""
    data = pickle.dumps(message)
    stream.write(_LENGTH.pack(len(data)) + data)
    stream.flush()


def receive(stream: IO[bytes]) -> Any:
    """Reads a message; `None` if the other side is gone."""
    head = stream.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        return None
    (length,) = _LENGTH.unpack(head)
    data = stream.read(length)
    return pickle.loads(data) if len(data) == length else None

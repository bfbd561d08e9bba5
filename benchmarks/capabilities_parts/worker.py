"""Compiles in a process of its own, which is started anew when a compiler ends it."""

import contextlib
import functools
import multiprocessing
import os
import re
import tempfile
from pathlib import Path

from benchmarks.coverage_parts.tpu import use_environment

from .survey import Verdict

SECONDS = 120
STARTING_SECONDS = 120
# The line that a failed check of libtpu's writes before it ends the process.
_LAST_WORDS = re.compile(r"^F\d{4} .*?\] *(.*)$|^.*(Check failed.*)$", re.MULTILINE)


def serve(connection, errors):
    """What the process does: answers questions until there are no more.

    Args:
      connection: where questions come from, and answers go.
      errors: a file for all that is printed.
    """
    with Path(errors).open("w") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    use_environment()
    from .compiler import attempt
    from .table import GROUPS

    probes = {(group.title, row.name): row for group in GROUPS for row in group.rows}
    connection.send("ready")
    while True:
        chip, *probe, column = connection.recv()
        connection.send(attempt(functools.partial(probes[tuple(probe)].build, column), chip))


class Worker:
    """A process that compiles probes, or another in its place.

    Args:
      target: what the process does; as `serve`.
      seconds: how long it may take for an answer, by the clock.
    """

    def __init__(self, target=serve, seconds=SECONDS):
        self._target = target
        self._seconds = seconds
        self._context = multiprocessing.get_context("spawn")
        self._process = None
        self._directory = tempfile.TemporaryDirectory()
        self._errors = Path(self._directory.name) / "errors"

    def ask(self, *question):
        """The answer to a question, or a `Verdict` on what became of the process."""
        if self._process is None:
            self._start()
        try:
            self._connection.send(question)
            return self._answer(self._seconds)
        except TimeoutError:
            verdict = Verdict(False, "end", f"not compiled within {self._seconds:g} s")
        except (EOFError, OSError):
            self._process.join()
            words = self._last_words()
            verdict = Verdict(False, "end", words or f"exit code {self._process.exitcode}")
        self._end()
        return verdict

    def _start(self):
        self._connection, other = self._context.Pipe()
        self._process = self._context.Process(
            target=self._target, args=(other, str(self._errors)), daemon=True
        )
        self._process.start()
        other.close()
        try:
            self._answer(STARTING_SECONDS)
        except (EOFError, OSError) as error:
            printed = self._errors.read_text() if self._errors.exists() else ""
            raise RuntimeError(f"the compiler's process does not start: {printed}") from error

    def _answer(self, seconds):
        if not self._connection.poll(seconds):
            raise TimeoutError
        return self._connection.recv()

    def _last_words(self):
        with contextlib.suppress(OSError):
            said = _LAST_WORDS.search(self._errors.read_text(errors="replace"))
            return (said[1] or said[2]).strip() if said else ""
        return ""

    def _end(self):
        self._process.kill()
        self._process.join()
        self._connection.close()
        self._process = None

    def close(self):
        """Ends the process."""
        if self._process is not None:
            self._end()
        self._directory.cleanup()

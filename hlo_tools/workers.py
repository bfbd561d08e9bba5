"""A function over many items in several processes, of which any may die."""

import multiprocessing
import signal
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Generic, TypeVar, cast

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True, kw_only=True)
class Died:
    """What stands for the result of an item whose process ended before it gave one.

    Attributes:
      reason: how it ended.
    """

    reason: str


def run_in_processes(
    function: Callable[[_Item], _Result], items: Sequence[_Item], jobs: int
) -> Iterator[tuple[int, _Result | Died]]:
    """Yields the result of each item once, with the item's number, in the order in which they end.

    An item whose process ends without a result, because it was killed or because `function` raised,
    counts as done all the same, and the others go on in a new process.

    Args:
      function: one that can be pickled; so must the items and the results.
      items: what it is called with, one by one.
      jobs: the number of processes.
    """
    pool = _Pool(function, items)
    try:
        for _ in range(min(jobs, len(items))):
            pool.start()
        while pool.workers:
            for pipe in wait(list(pool.workers)):
                yield pool.take(cast(Connection, pipe))
    finally:
        pool.end()


class _Pool(Generic[_Item, _Result]):
    """Processes, each with the number of the item that it works on, by the pipes to them."""

    def __init__(self, function: Callable[[_Item], _Result], items: Sequence[_Item]) -> None:
        self._function = function
        self._items = items
        self._waiting = deque(range(len(items)))
        # Started afresh: a copy of this process would share its locks and its open files.
        self._context = multiprocessing.get_context("spawn")
        self.workers: dict[Connection, tuple[BaseProcess, int]] = {}

    def start(self) -> None:
        """Starts a process, if there is an item left for it."""
        if not self._waiting:
            return
        ours, theirs = self._context.Pipe()
        process = self._context.Process(target=_work, args=(self._function, theirs), daemon=True)
        process.start()
        theirs.close()
        self._give(ours, process)

    def take(self, pipe: Connection) -> tuple[int, _Result | Died]:
        """Takes the result of a process, or that it has ended, and gives out the next item."""
        process, number = self.workers.pop(pipe)
        try:
            result: _Result = pipe.recv()
        except (EOFError, ConnectionResetError):
            pipe.close()
            process.join()
            self.start()
            return number, Died(reason=_end(process))
        self._give(pipe, process)
        return number, result

    def end(self) -> None:
        """Ends the processes, whatever they are doing."""
        for pipe, (process, _) in self.workers.items():
            pipe.close()
            process.terminate()
        for process, _ in self.workers.values():
            process.join()

    def _give(self, pipe: Connection, process: BaseProcess) -> None:
        """Gives a process the next item; one that has none left ends as its pipe closes."""
        if not self._waiting:
            pipe.close()
            process.join()
            return
        number = self._waiting.popleft()
        self.workers[pipe] = (process, number)
        # Where the process has ended already, reading from the pipe will tell.
        with suppress(BrokenPipeError):
            pipe.send(self._items[number])


def _work(function: Callable[[_Item], _Result], pipe: Connection) -> None:
    """What a process does until its parent closes the pipe, or is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent is interrupted too, and ends this one
    with suppress(EOFError, BrokenPipeError):
        while True:
            pipe.send(function(pipe.recv()))


def _end(process: BaseProcess) -> str:
    code = process.exitcode or 0
    if code >= 0:
        return f"ended with status {code}"
    return f"was ended by {signal.Signals(-code).name}"

"""One collected launch taken through the steps of a column, and what came of it.

Runs in a process that may be ended at any moment, so each step is announced before it begins.
"""

import time
import traceback
from abc import ABC, abstractmethod
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from hlo_tools.errors import InputError
from translators.verify.memory import lay_out
from translators.verify.rungs import PROOF

from .store import describe, load


class Attempt(ABC):
    """Takes launches through the steps of one column.

    Args:
      announce: called before each step with its name and the outcome so far.
      debug: whether to print what was emitted and the whole proof.
    """

    outcome = None  # the class of the column's outcomes

    def __init__(self, announce, *, debug=False):
        self._announce = announce
        self._debug = debug

    def run(self, path):
        """The outcome of a stored launch; an error of ours is one, not raised."""
        outcome = self.outcome()
        try:
            with self._timed(outcome, "load"):
                collected = load(Path(path))
            outcome.launch = describe(collected.launch)
            self._steps(collected, outcome)
        except InputError as error:
            outcome.result, outcome.reason, outcome.place = refusal(error)
        except Exception as error:  # to find errors of ours is what this program is for
            outcome.result = "error"
            outcome.reason = f"{type(error).__name__}: {first_line(error)}"
            outcome.trace = traceback.format_exc()
            outcome.place = _raised_at(error)
        return outcome

    @abstractmethod
    def _steps(self, collected, outcome):
        """Fills the outcome of a launch that is loaded."""

    @contextmanager
    def _timed(self, outcome, step):
        self._announce(step, outcome)
        start = time.perf_counter()
        try:
            yield
        finally:
            outcome.seconds[step] = round(time.perf_counter() - start, 2)


def refusal(error):
    """(result, reason, place) of what is refused; without a place it is an error of ours."""
    if error.path and error.line:
        return "refused", error.message, f"{error.path}:{error.line}"
    return "error", f"refused without a place: {error.message}", ""


def failure(rung):
    """(reason, place) of a rung that failed: where in the arrays, and at which line."""
    reason = f"{rung.name}: {rung.reason}"
    if rung.array:
        where = ", ".join(map(str, rung.index))
        reason += f", at `{rung.array}[{where}]`: {rung.found} for {rung.expected}"
    if rung.case and rung.name != PROOF:
        reason += f" ({rung.case})"
    place = f"{rung.lines[0].file}:{rung.lines[0].line}" if rung.lines and rung.lines[0] else ""
    return reason, place


@dataclass(frozen=True, slots=True)
class _Address:
    """An array by its address, as the proof asks host code's arrays for it."""

    address: int

    def data_ptr(self):
        return self.address


def recorded_values(collected):
    """What host code passed for each array parameter, in the memory that was kept of it."""
    values = {}
    for array in collected.launch.arrays:
        memory = collected.memory[array.buffer]
        itemsize = lay_out(collected.launch).views[array.name].dtype.itemsize
        start = memory.__array_interface__["data"][0]
        passed = _Address(start + array.offset * itemsize)
        parameter, _, member = array.name.partition(".")
        if member:
            values.setdefault(parameter, {})[int(member)] = passed
        else:
            values[parameter] = passed
    return values


def first_line(error):
    """The first line of what an error says."""
    return str(error).strip().partition("\n")[0][:300]


def _raised_at(error):
    """The innermost line of ours on the way to an error."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if "/translators/" in frame.filename] or frames
    return f"{ours[-1].filename.partition('/translators/')[2]}:{ours[-1].lineno}"

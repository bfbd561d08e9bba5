"""Progress of a long run, on a terminal only."""

import shutil
import sys
import time
from dataclasses import dataclass, field

from hlo_tools.report.escape import visible

# A run that ends sooner, or reads less, shows nothing.
PATIENCE_SECONDS = 1.0
LARGE_INPUT = 5_000_000

_CLEAR_LINE = "\r\x1b[2K"
_BAR_COLUMNS = 24
_REDRAW_SECONDS = 0.1


@dataclass(slots=True)
class Progress:
    """One line on standard error that says what is being done, and is gone at the end.

    Attributes:
      silent: says nothing, wherever standard error goes.
    """

    silent: bool = False
    _started: float = field(default_factory=time.monotonic)
    _shown: bool = False
    _counting_since: float | None = None
    _drawn: float = 0.0

    def update(self, phase: str, file: str = "", size: int = 0) -> None:
        """Shows the phase and the file, if the run is long or `size` (of the input) large."""
        late = time.monotonic() - self._started >= PATIENCE_SECONDS
        if self._shown or late or size >= LARGE_INPUT:
            self._show(f"{phase} {file}".rstrip())

    def count(self, phase: str, done: int, total: int) -> None:
        """Shows how many of a number of like things are done, and how long the rest will take."""
        now = time.monotonic()
        if self._counting_since is None:
            self._counting_since = now
        if now - self._started < PATIENCE_SECONDS or now - self._drawn < _REDRAW_SECONDS:
            return
        self._drawn = now
        filled = _BAR_COLUMNS * done // max(1, total)
        bar = "#" * filled + "-" * (_BAR_COLUMNS - filled)
        text = f"{phase} [{bar}] {done:,} of {total:,}"
        taken = now - self._counting_since
        if done and taken > 0:
            left = taken / done * (total - done)
            text += f", {done / taken:.3g} a second, {_clock(left)} left"
        self._show(text)

    def clear(self) -> None:
        """Removes the line."""
        if self._shown:
            sys.stderr.write(_CLEAR_LINE)
            sys.stderr.flush()
            self._shown = False

    def _show(self, text: str) -> None:
        if self.silent or not sys.stderr.isatty():
            return
        width = shutil.get_terminal_size().columns - 1
        sys.stderr.write(_CLEAR_LINE + visible(text)[:width])
        sys.stderr.flush()
        self._shown = True


def _clock(seconds: float) -> str:
    """A duration as `m:ss` or `h:mm:ss`."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"

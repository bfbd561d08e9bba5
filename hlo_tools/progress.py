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


@dataclass(slots=True)
class Progress:
    """One line on standard error that says what is being done, and is gone at the end."""

    _started: float = field(default_factory=time.monotonic)
    _shown: bool = False

    def update(self, phase: str, file: str = "", size: int = 0) -> None:
        """Shows the phase and the file, if the run is long or `size` (of the input) large."""
        late = time.monotonic() - self._started >= PATIENCE_SECONDS
        if not sys.stderr.isatty() or not (self._shown or late or size >= LARGE_INPUT):
            return
        width = shutil.get_terminal_size().columns - 1
        text = visible(f"{phase} {file}".rstrip())
        sys.stderr.write(_CLEAR_LINE + text[:width])
        sys.stderr.flush()
        self._shown = True

    def clear(self) -> None:
        """Removes the line."""
        if self._shown:
            sys.stderr.write(_CLEAR_LINE)
            sys.stderr.flush()
            self._shown = False

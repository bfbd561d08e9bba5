"""Running a person's own Python code, whose errors are errors in the input."""

import traceback
from pathlib import Path
from types import TracebackType

from hlo_tools.errors import InputError

# What runs of our own while the person's code does, apart from the stand-ins that it handles.
_OURS = {
    str(Path(__file__).with_name(name)) for name in ("binding.py", "kernels.py", "recorder.py")
}


class HostCode:
    """Within it, what the person's code raises becomes an `InputError` at the person's line.

    An error that our own code raises while theirs calls it is a bug, and stays what it is.

    Args:
      path: the person's file.
      doing: what is being done, as the beginning of a sentence.
    """

    def __init__(self, path: str | None, doing: str) -> None:
        self._path = path
        self._doing = doing

    def __enter__(self) -> None:
        pass

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if not isinstance(error, Exception) or isinstance(error, InputError):
            return
        frames = traceback.extract_tb(trace)
        if len(frames) > 1 and frames[-1].filename in _OURS:
            return  # the first frame is where this block is, and calls the person's code
        raise InputError(
            f"{self._doing}: {type(error).__name__}: {error}",
            path=self._path,
            line=self._line(error, frames),
        ) from error

    def _line(self, error: Exception, frames: traceback.StackSummary) -> int | None:
        """The last line of the person's file on the way to the error."""
        if isinstance(error, SyntaxError) and error.filename == self._path:
            return error.lineno
        lines = [frame.lineno for frame in frames if frame.filename == self._path]
        return lines[-1] if lines else None

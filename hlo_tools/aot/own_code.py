"""Running a person's own Python code, whose errors are errors in the input."""

import os
import traceback
from pathlib import Path
from types import TracebackType

from hlo_tools.errors import InputError
from hlo_tools.hlo.provenance import is_library_file

_MAX_MESSAGE_CHARACTERS = 600
_OURS = str(Path(__file__).resolve().parents[1]) + os.sep


class OwnCode:
    """Within it, what the person's code raises becomes an `InputError` at the person's line.

    An error that already is one passes, as does what ends a process from outside.

    Args:
      doing: what is being done, as the beginning of a sentence.
      path: the file that is blamed if no line of the person's is on the way to the error.
    """

    def __init__(self, doing: str, path: str | None = None) -> None:
        self._doing = doing
        self._path = path

    def __enter__(self) -> None:
        pass

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if isinstance(error, SystemExit):
            raise InputError(
                f"{self._doing}: it exits; keep what is a script below "
                '`if __name__ == "__main__":`',
                path=self._path,
            ) from error
        if not isinstance(error, Exception) or isinstance(error, InputError):
            return
        path, line = _place(error, trace) or (self._path, None)
        raise InputError(
            f"{self._doing}: {type(error).__name__}: {_message(error)}", path=path, line=line
        ) from error


def _message(error: Exception) -> str:
    """The first paragraph of what an error says, on one line."""
    if isinstance(error, SyntaxError):
        return error.msg
    paragraph = str(error).strip().partition("\n\n")[0].partition("\n---")[0]
    text = " ".join(paragraph.split())
    if len(text) > _MAX_MESSAGE_CHARACTERS:
        return text[:_MAX_MESSAGE_CHARACTERS].rstrip() + "…"
    return text or "(it says nothing)"


def _place(error: Exception, trace: TracebackType | None) -> tuple[str, int | None] | None:
    """The innermost line of the person's own code on the way to an error."""
    if isinstance(error, SyntaxError) and error.filename:
        return shown(error.filename), error.lineno
    for frame in reversed(traceback.extract_tb(trace)):
        if not (is_library_file(frame.filename) or frame.filename.startswith(_OURS)):
            return shown(frame.filename), frame.lineno
    return None


def shown(file: str) -> str:
    """The path of a file as a person would write it: relative where it lies below."""
    path = Path(file)
    here = Path.cwd()
    return str(path.relative_to(here)) if path.is_relative_to(here) else file

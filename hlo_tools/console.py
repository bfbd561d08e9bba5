"""What the commands have in common: options given once, what they write, and how they fail."""

import os
import sys
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import click

MAX_WIDTH = 100
"""Columns that a report fills at most."""

EXIT_DONE = 0
EXIT_ERROR = 2
EXIT_INTERRUPTED = 130

_Command = TypeVar("_Command", bound=Callable[..., Any])


def option_once(*names: str, **attributes: Any) -> Callable[[_Command], _Command]:
    """Declares an option that may be given once; click by itself keeps the last of several."""
    return click.option(*names, multiple=True, callback=once, **attributes)


def write_stdout(pieces: Iterable[str]) -> None:
    """Writes to standard output; a reader that has gone, as `head` does, ends it quietly."""
    from io import TextIOWrapper

    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        sys.stdout.writelines(pieces)
        sys.stdout.flush()
    except BrokenPipeError:
        # What is still buffered is flushed at exit, and must not fail again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def screen(color: str | None) -> dict[str, Any]:
    """Returns the options of reports that depend on where standard output goes.

    Args:
      color: `always`, `never` or `auto`; `None` is `auto`.
    """
    if not sys.stdout.isatty():
        return {}
    from shutil import get_terminal_size

    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return {
        "color": color == "always" or (color != "never" and not plain),
        "width": min(MAX_WIDTH, get_terminal_size().columns),
    }


def complain(message: str) -> None:
    """Writes one line to standard error."""
    from hlo_tools.report.escape import visible

    click.echo(visible(message), err=True)


def report_bug(error: Exception, program: str) -> None:
    """Writes a traceback to standard error, and that it is not the person's fault."""
    import traceback

    for line in "".join(traceback.format_exception(error)).splitlines():
        complain(line)
    complain(f"internal error: this is a bug in {program}, please report it with the lines above")


def report_interrupt() -> int:
    """Says that the run was interrupted, and gives the exit status of that."""
    complain("interrupted")
    return EXIT_INTERRUPTED


def report_failure(error: Exception, program: str) -> int:
    """Says what ended a run, and gives the exit status of that.

    Wrong usage, input that cannot be used and what the operating system refuses are said in one
    line; anything else is a bug.
    """
    from hlo_tools.errors import InputError

    if isinstance(error, click.UsageError):
        complain(f"error: {error.format_message().rstrip('.')}; see `{program} --help`")
    elif isinstance(error, InputError):
        complain(f"error: {error}")
    elif isinstance(error, OSError):
        where = f"{error.filename}: " if error.filename else ""
        complain(f"error: {where}{error.strerror or error}")
    else:
        report_bug(error, program)
    return EXIT_ERROR


def once(_: click.Context, option: click.Parameter, values: tuple[Any, ...]) -> Any:
    """Returns the value of an option that may be given once, or `None`."""
    if len(values) > 1:
        raise click.UsageError(f"`{option.opts[-1]}` is given {len(values)} times")
    return values[0] if values else None

"""What a person's code prints while it is loaded and called."""

from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from io import StringIO

from hlo_tools.console import complain


@contextmanager
def held_output() -> Iterator[None]:
    """Keeps what a person's code prints off standard output.

    It is shown, on standard error, only if there is an error: what a file prints of kernels that
    were not run says nothing.
    """
    held = StringIO()
    try:
        with redirect_stdout(held):
            yield
    except BaseException:
        printed = held.getvalue()
        if printed:
            complain("the file printed:")
            for line in printed.splitlines():
                complain(f"  | {line}")
        raise

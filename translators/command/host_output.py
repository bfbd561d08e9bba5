"""What a person's code prints while it is loaded and called."""

from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from io import StringIO

from hlo_tools.console import complain
from translators.triton.launches import LaunchError


@contextmanager
def held_output() -> Iterator[None]:
    """Keeps what a person's code prints off standard output.

    It is shown, on standard error, only if that code fails: what a file prints of kernels that
    were not run says nothing.
    """
    held = StringIO()
    try:
        with redirect_stdout(held):
            yield
    except LaunchError:
        raise  # what was asked for does not fit the code, which did not fail
    except BaseException:
        printed = held.getvalue()
        if printed:
            complain("the file printed:")
            for line in printed.splitlines():
                complain(f"  | {line}")
        raise

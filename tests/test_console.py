"""How every command fails: one line for what a person can mend, a traceback for what is ours."""

import click
import pytest

from hlo_tools.console import EXIT_ERROR, option_once, report_failure
from hlo_tools.errors import InputError


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (click.UsageError("no PATH is given."), "error: no PATH is given; see `tool --help`"),
        (InputError("no HLO", path="a.txt", line=3), "error: a.txt:3: no HLO"),
        (FileNotFoundError(2, "No such file", "b.txt"), "error: b.txt: No such file"),
        (OSError("disk\x1b[2Jgone"), r"error: disk\x1b[2Jgone"),
    ],
)
def test_what_a_person_can_mend_is_said_in_one_line(error, line, capsys):
    assert report_failure(error, "tool") == EXIT_ERROR
    assert capsys.readouterr() == ("", f"{line}\n")


def test_anything_else_is_a_bug_of_the_program(capsys):
    assert report_failure(ZeroDivisionError("by zero"), "tool") == EXIT_ERROR
    out, err = capsys.readouterr()
    assert out == ""
    assert "ZeroDivisionError: by zero" in err
    assert err.splitlines()[-1].startswith("internal error: this is a bug in tool,")


def test_an_option_given_twice_is_wrong_usage():
    """click by itself keeps the last of several."""

    @click.command()
    @option_once("--size", type=int)
    def command(size):
        return size

    assert command.main(["--size", "3"], standalone_mode=False) == 3
    assert command.main([], standalone_mode=False) is None
    with pytest.raises(click.UsageError, match="`--size` is given 2 times"):
        command.main(["--size", "3", "--size", "4"], standalone_mode=False)

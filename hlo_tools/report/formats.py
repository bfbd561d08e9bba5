"""The formats by name, each imported when it is asked for."""

from collections.abc import Iterator
from importlib import import_module
from typing import Protocol, cast

from hlo_tools.findings import Outcome
from hlo_tools.report.view import ReportOptions


class _Format(Protocol):
    def render(self, outcome: Outcome, options: ReportOptions) -> Iterator[str]: ...


def render(name: str, outcome: Outcome, options: ReportOptions) -> Iterator[str]:
    """Renders an outcome in one of the formats, in pieces of text.

    A format is the module of its name beside this one; which names a user may ask for is the
    affair of the command line.
    """
    module = cast(_Format, import_module(f"hlo_tools.report.{name}"))
    return module.render(outcome, options)

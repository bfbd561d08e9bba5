"""Reading, analysing and reporting on compiled XLA programs (HLO).

`lint` is where a notebook starts; `LintResult` is what it returns. The sizes `KiB`, `MiB` and `GiB`
are for conditions on memory.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hlo_tools.api import LintResult, lint
    from hlo_tools.quantities import GiB, KiB, MiB

__all__ = ["GiB", "KiB", "LintResult", "MiB", "__version__", "lint"]

__version__ = "0.1.0"

_HOMES = {
    "GiB": "hlo_tools.quantities",
    "KiB": "hlo_tools.quantities",
    "LintResult": "hlo_tools.api",
    "MiB": "hlo_tools.quantities",
    "lint": "hlo_tools.api",
}


def __getattr__(name: str) -> object:
    """Imports what is asked for only then: a command that prints its version needs none of it."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)

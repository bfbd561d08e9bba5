"""Functions that an emitted file of a kernel brings along where it needs them."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from translators.emit.pallas import computing, functions, orders
from translators.emit.pallas.elements import carriers, rounding
from translators.emit.preamble import HELPERS as COMMON
from translators.emit.statements import names_in

HELPERS: Mapping[str, str] = MappingProxyType(
    {
        **COMMON,
        **computing.HELPERS,
        **rounding.HELPERS,
        **carriers.HELPERS,
        **functions.HELPERS,
        **orders.HELPERS,
    }
)


def needed(asked: Iterable[str], body: Iterable[str]) -> Mapping[str, str]:
    """The functions that a body calls of those that were asked for, and what these call."""
    asked = list(asked)
    used = names_in("\n".join(body))
    for name in reversed(asked):
        if name in used:
            used |= names_in(HELPERS[name])
    return {name: HELPERS[name] for name in asked if name in used}

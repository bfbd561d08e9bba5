"""Functions that an emitted file of a kernel brings along where it needs them."""

from collections.abc import Mapping
from types import MappingProxyType

from translators.emit.pallas import computing, functions, orders
from translators.emit.pallas.elements import carriers, rounding
from translators.emit.preamble import HELPERS as COMMON

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

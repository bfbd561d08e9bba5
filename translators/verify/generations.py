"""The TPU generations that are compiled for."""

from collections.abc import Mapping
from types import MappingProxyType

TOPOLOGIES: Mapping[str, str] = MappingProxyType(
    {
        "v4": "v4:2x2x1",
        "v5e": "v5e:2x2",
        "v5p": "v5p:2x2x1",
        "v6e": "v6e:2x2",
        "7x": "tpu7x:2x2x1",
    }
)
"""A small topology of each, by libtpu's names."""

USUAL = ("v5e", "v6e", "7x")
"""The generations that are compiled for where none is asked for."""

DECISIVE = frozenset({"v5e", "v6e"})
"""Those of them that a kernel in Pallas has to compile for."""

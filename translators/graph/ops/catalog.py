"""Every op that the graph can hold, by name."""

from collections.abc import Mapping
from types import MappingProxyType

from translators.graph.ops import (
    assembly,
    control,
    conversions,
    descriptors,
    dot,
    externs,
    floats,
    integers,
    math,
    memory,
    program,
    reduce,
    shape,
)
from translators.graph.ops.definition import OpDefinition


def _collect() -> Mapping[str, OpDefinition]:
    found: dict[str, OpDefinition] = {}
    for module in (
        assembly,
        control,
        conversions,
        descriptors,
        dot,
        externs,
        floats,
        integers,
        math,
        memory,
        program,
        reduce,
        shape,
    ):
        for definition in module.OPS:
            if definition.name in found:
                raise ValueError(f"`{definition.name}` is defined twice")
            found[definition.name] = definition
    return MappingProxyType(found)


OPS: Mapping[str, OpDefinition] = _collect()

"""All probes, in the order in which they are shown."""

from . import (
    blocks,
    control,
    conversions,
    copies,
    elementwise,
    folding,
    memory,
    products,
    references,
    shapes,
)

GROUPS = (
    *memory.GROUPS,
    *blocks.GROUPS,
    *references.GROUPS,
    *copies.GROUPS,
    *elementwise.GROUPS,
    *conversions.GROUPS,
    *products.GROUPS,
    *folding.GROUPS,
    *shapes.GROUPS,
    *control.GROUPS,
)

"""A module as plain values, for comparison."""

from typing import Any

from hlo_tools.hlo.attributes import iterate_attributes
from hlo_tools.hlo.module import Module


def model_of(module: Module, *, attributes: bool = True) -> dict[str, Any]:
    """Everything that a module says; attributes as text, if wanted."""
    return {
        "name": module.name,
        "header": list(iterate_attributes(module.header_text)),
        "entry": module.entry.name if module.entry else None,
        "tables": [line.rstrip() for line in module.frame_tables.splitlines()],
        "truncated": module.truncated,
        "computations": [
            (
                computation.name,
                computation.is_entry,
                computation.root.name,
                computation.complete,
                computation.attribute_text,
                [
                    (
                        i.name,
                        i.shape,
                        i.opcode,
                        [operand.name for operand in i.operands],
                        "" if i.operands else i.argument_text.strip(),
                        i.attribute_text.rstrip() if attributes else None,
                        [c.name for c in i.called_computations],
                    )
                    for i in computation.instructions
                ],
            )
            for computation in module.computations
        ],
    }

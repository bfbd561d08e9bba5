"""What a module's values are made of: arrays, their memory spaces, and what is called where."""

import re
from functools import cached_property
from itertools import accumulate

from hlo_tools.analysis.aliasing import leaf_count, leaf_number
from hlo_tools.analysis.execution import Execution
from hlo_tools.hardware import detect_backend
from hlo_tools.hlo.attributes import parse_integers
from hlo_tools.hlo.module import Computation, Instruction, Module
from hlo_tools.hlo.shape import HBM_SPACE, VMEM_SPACES, Shape

VMEM_SPACE = VMEM_SPACES[0]
TPU_GRANULE = 16384
"""Temporary buffers in a TPU's HBM begin at multiples of this many bytes (buffer assignments of
libtpu 0.0.52, all generations)."""
SCALAR_BYTES = 512
"""A scalar's buffer on TPU; buffers up to this size are not followed into one another."""
OUTSIDE = -1
"""The number of a value that lies in no buffer counted here: constants, what is missing."""
_ALIAS = re.compile(r"\{([\d,\s]*)\}:\s*\((\d+),\s*\{([\d,\s]*)\}")


class ModuleFacts:
    """What the tracers of one module's computations share.

    Attributes:
      granule: temporary buffers in device memory begin at multiples of this many bytes.
    """

    def __init__(self, module: Module, execution: Execution) -> None:
        self._module = module
        self._execution = execution
        # By identity: the reader makes one Shape of all that are written alike.
        self._leaves: dict[int, tuple[Shape, tuple[tuple[Shape, int], ...]]] = {}
        self._sizes: dict[int, frozenset[int]] = {}
        self._calls: dict[Instruction, tuple[Computation, ...]] = {}
        self.granule = TPU_GRANULE if detect_backend(module) == "tpu" else 1

    def is_root(self, computation: Computation) -> bool:
        """Whether the program starts there: what it is given and gives are held by nobody else."""
        return not self._execution.callers(computation)

    def leaves(self, shape: Shape) -> tuple[tuple[Shape, int], ...]:
        """The leaves of a shape and the space of each, `OUTSIDE` for spaces that do not count."""
        known = self._leaves.get(id(shape))
        if known is None:
            known = shape, tuple((leaf, _space(leaf)) for leaf in shape.leaves())
            self._leaves[id(shape)] = known
        return known[1]

    def sizes(self, shape: Shape) -> frozenset[int]:
        """The sizes of its leaves that are worth following into another's buffer."""
        known = self._sizes.get(id(shape))
        if known is None:
            known = frozenset(
                leaf.padded_bytes
                for leaf, space in self.leaves(shape)
                if space != OUTSIDE and leaf.padded_bytes > SCALAR_BYTES
            )
            self._sizes[id(shape)] = known
        return known

    def calls(self, instruction: Instruction) -> tuple[Computation, ...]:
        """The computations that an instruction runs."""
        known = self._calls.get(instruction)
        if known is None:
            known = self._calls[instruction] = instruction.called_computations
        return known

    @cached_property
    def aliased_outputs(self) -> dict[int, int]:
        """Leaves of the entry's result in arguments' buffers: their numbers, result -> argument."""
        entry = self._module.entry
        value = self._module.attribute("input_output_alias")
        if entry is None or value is None:
            return {}
        shapes = [parameter.shape for parameter in entry.parameters]
        starts = list(accumulate((leaf_count(shape) for shape in shapes), initial=0))
        found: dict[int, int] = {}
        for output, argument, index in _ALIAS.findall(value):
            result = leaf_number(entry.root.shape, parse_integers(output))
            number = int(argument)
            inside = (
                leaf_number(shapes[number], parse_integers(index)) if number < len(shapes) else None
            )
            if result is not None and inside is not None:
                found[result] = starts[number] + inside
        return found


def _space(leaf: Shape) -> int:
    """The space in which a leaf counts; scalars, tokens, flags and host memory do not."""
    space = leaf.memory_space
    if not leaf.dimensions:
        return OUTSIDE
    if space in VMEM_SPACES:
        return VMEM_SPACE
    return HBM_SPACE if space == HBM_SPACE and leaf.padded_bytes else OUTSIDE

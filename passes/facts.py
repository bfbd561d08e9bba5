"""Everything that is known about one module, computed when a rule first asks for it."""

from functools import cached_property

from hlo_tools.analysis.memory_refusal import MemoryRefusal
from hlo_tools.analysis.program import Program
from hlo_tools.hardware import Chip
from hlo_tools.hlo.module import Instruction, Module
from hlo_tools.hlo.provenance import Provenance
from passes.graph import Work


class Facts(Program):
    """The analyses of one module, shared by all rules.

    Args:
      module: the module as read.
      backend: what it was compiled for, as `hlo_tools.hardware.detect_backend` names it.
      chip: the hardware whose figures price it; `None` where there are none.
      provenance: where instructions come from.
      floor: the share of a step, 0 to 1, below which nothing is worth a word.
      refusal: what the compiler said, if the module does not fit into device memory.
    """

    def __init__(
        self,
        module: Module,
        *,
        backend: str,
        chip: Chip | None,
        provenance: Provenance,
        floor: float,
        refusal: MemoryRefusal | None = None,
    ) -> None:
        super().__init__(module, chip=chip, provenance=provenance)
        self.backend = backend
        self.floor = floor
        self.refusal = refusal
        self.work = Work()

    @cached_property
    def significant(self) -> tuple[Instruction, ...]:
        """The executed instructions whose time or traffic reaches `floor`, in order of execution.

        Most of a program are small things; rules about the cost of single instructions look at
        these only.
        """
        return tuple(self.cost.costly(self.floor))

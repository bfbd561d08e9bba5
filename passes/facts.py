"""Everything that is known about one module, computed when a rule first asks for it."""

from functools import cached_property

from hlo_tools.analysis.asynchrony import Asynchrony
from hlo_tools.analysis.collectives import Collectives
from hlo_tools.analysis.cost import CostModel
from hlo_tools.analysis.dataflow import Dataflow
from hlo_tools.analysis.execution import Execution
from hlo_tools.analysis.liveness import Liveness
from hlo_tools.analysis.memory_refusal import MemoryRefusal
from hlo_tools.hardware import Chip
from hlo_tools.hlo.module import Instruction, Module
from hlo_tools.hlo.provenance import Provenance
from hlo_tools.hlo.shape import HBM_SPACE
from passes.graph import Work


class Facts:
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
        self.module = module
        self.backend = backend
        self.chip = chip
        self.provenance = provenance
        self.floor = floor
        self.refusal = refusal
        self.work = Work()

    @cached_property
    def execution(self) -> Execution:
        """What runs, and how often."""
        return Execution(self.module)

    @cached_property
    def asynchrony(self) -> Asynchrony:
        """What overlaps what."""
        return Asynchrony(self.module, self.execution)

    @cached_property
    def collectives(self) -> Collectives:
        """The collectives, each once."""
        return Collectives(self.module, self.execution, self.asynchrony)

    @cached_property
    def cost(self) -> CostModel:
        """What each instruction costs."""
        return CostModel(self.module, self.execution, self.collectives, self.chip)

    @cached_property
    def dataflow(self) -> Dataflow:
        """Where values come from and who reads them, fusions looked through."""
        return Dataflow(self.module)

    @cached_property
    def liveness(self) -> Liveness:
        """What is in memory, and when."""
        return Liveness(self.module, self.execution)

    @cached_property
    def optimized(self) -> bool:
        """Whether this is what the compiler made: scheduled, or with a fusion in what runs.

        Before optimisation every op stands alone, and no layout is chosen: what rules say of the
        compiler's work would be false.
        """
        if self.module.is_scheduled:
            return True
        return any(i.opcode == "fusion" for i in self.module.instructions())

    @cached_property
    def significant(self) -> tuple[Instruction, ...]:
        """The executed instructions whose time or traffic reaches `floor`, in order of execution.

        Most of a program are small things; rules about the cost of single instructions look at
        these only.
        """
        return tuple(self.cost.costly(self.floor))

    @cached_property
    def peak_hbm_bytes(self) -> int:
        """Modelled peak of device memory, arguments and outputs included."""
        return self.liveness.peak_bytes(HBM_SPACE)

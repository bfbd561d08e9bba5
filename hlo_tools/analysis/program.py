"""Everything that is known about one module, computed when it is first asked for."""

from functools import cached_property

from hlo_tools.analysis.asynchrony import Asynchrony
from hlo_tools.analysis.collectives import Collectives
from hlo_tools.analysis.cost import CostModel
from hlo_tools.analysis.dataflow import Dataflow
from hlo_tools.analysis.execution import Execution
from hlo_tools.analysis.liveness import Liveness
from hlo_tools.analysis.replication import Replication
from hlo_tools.hardware import Chip
from hlo_tools.hlo.module import Module
from hlo_tools.hlo.provenance import Provenance
from hlo_tools.hlo.shape import HBM_SPACE


class Program:
    """The analyses of one module.

    Args:
      module: the module as read.
      chip: the hardware whose figures price it; `None` where there are none.
      provenance: where instructions come from.
    """

    def __init__(self, module: Module, *, chip: Chip | None, provenance: Provenance) -> None:
        self.module = module
        self.chip = chip
        self.provenance = provenance

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
    def replication(self) -> Replication:
        """Which devices hold the same values."""
        return Replication(self.module, self.execution, self.collectives)

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

        Before optimisation every op stands alone, and no layout is chosen: what is said of the
        compiler's work would be false.
        """
        if self.module.is_scheduled:
            return True
        return any(i.opcode == "fusion" for i in self.module.instructions())

    @cached_property
    def peak_hbm_bytes(self) -> int:
        """Modelled peak of device memory, arguments and outputs included."""
        return self.liveness.peak_bytes(HBM_SPACE)

"""Everything that is known about one module, computed when a rule first asks for it."""

from functools import cached_property

from hlo_tools.analysis.asynchrony import Asynchrony
from hlo_tools.analysis.collectives import Collectives
from hlo_tools.analysis.cost import CostModel
from hlo_tools.analysis.execution import Execution
from hlo_tools.analysis.liveness import Liveness
from hlo_tools.hardware import Chip
from hlo_tools.hlo.module import Module
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
    """

    def __init__(
        self, module: Module, *, backend: str, chip: Chip | None, provenance: Provenance
    ) -> None:
        self.module = module
        self.backend = backend
        self.chip = chip
        self.provenance = provenance
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
    def liveness(self) -> Liveness:
        """What is in memory, and when."""
        return Liveness(self.module, self.execution)

    @cached_property
    def peak_hbm_bytes(self) -> int:
        """Modelled peak of device memory, arguments and outputs included."""
        return self.liveness.peak_bytes(HBM_SPACE)

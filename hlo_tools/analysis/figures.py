"""The figures of a whole module, from its analyses."""

from collections import Counter

from hlo_tools.analysis.program import Program
from hlo_tools.figures import Figures
from hlo_tools.hlo.shape import HBM_SPACE

_WIDE = frozenset({"f32", "f64", "c64", "c128"})


def figures(program: Program) -> Figures:
    """Sums up one step of a module."""
    model, execution, liveness = program.cost, program.execution, program.liveness
    exposed, wire = 0.0, 0
    for collective in program.collectives.all:
        times = execution.times_at_least(collective.computation)
        exposed += times * model.exposed_seconds(collective) if model.chip else 0.0
        wire += times * (collective.wire_bytes or 0)
    dots, wide = 0, 0
    for computation in execution.executed:
        times = execution.times_at_least(computation)
        for instruction in computation.instructions:
            work = model.work(instruction)
            for product in work.matmuls if work is not None else ():
                dots += times * product.flops
                if product.element_type in _WIDE:
                    wide += times * product.flops
    held = [b for b in liveness.buffers if b.space == HBM_SPACE]
    counts = Counter(collective.kind for collective in program.collectives.all)
    return Figures(
        step_seconds=model.step_seconds if model.chip else None,
        exposed_collective_seconds=exposed if model.chip else None,
        hbm_bytes=model.step_bytes,
        wire_bytes=wire,
        dot_flops=dots,
        f32_dot_flops=wide,
        peak_hbm_bytes=program.peak_hbm_bytes,
        argument_bytes=liveness.argument_bytes(),
        output_bytes=liveness.output_bytes(),
        buffer_bytes=sum(b.shape.padded_bytes for b in held),
        padding_bytes=sum(b.shape.padded_bytes - b.shape.logical_bytes for b in held),
        collectives=tuple(sorted(counts.items())),
    )

"""The report of a comparison for programs: one JSON object with a published schema."""

from collections.abc import Iterator

from hlo_tools.comparison import (
    Cause,
    Change,
    ComparedModule,
    Comparison,
    LiveChange,
    ModuleComparison,
    Side,
)
from hlo_tools.figures import Figures
from hlo_tools.report.json import array, dumps, finite, source
from hlo_tools.report.view import ReportOptions

SCHEMA_VERSION = 1


def render(comparison: Comparison, options: ReportOptions) -> Iterator[str]:
    """Yields the report in pieces; causes of all sizes are in it."""
    tool = {"name": "hlo-lint", "version": comparison.tool_version}
    yield f'{{"schema_version": {SCHEMA_VERSION},\n"tool": {dumps(tool)},\n"modules": ['
    for number, module in enumerate(comparison.modules):
        yield ",\n" if number else "\n"
        yield from _module(module)
    yield '],\n"only_old": '
    yield from array({"path": path, "name": name} for path, name in comparison.only_old)
    yield ',\n"only_new": '
    yield from array({"path": path, "name": name} for path, name in comparison.only_new)
    yield ',\n"problems": '
    yield from array(
        {"message": item.message, "path": item.path, "line": item.line}
        for item in comparison.problems
    )
    summary = {
        "modules": len(comparison.modules),
        "changed": sum(bool(m.causes or m.live) for m in comparison.modules),
        "allowed_regression": finite(comparison.allowed),
        "regressed": len(comparison.regressed),
        "exit_status": comparison.exit_status,
    }
    yield f',\n"summary": {dumps(summary)}}}\n'


def _module(module: ModuleComparison) -> Iterator[str]:
    yield f'{{"old": {dumps(_side(module.old))},\n"new": {dumps(_side(module.new))},\n'
    yield f'"regression": {dumps(finite(module.regression))},\n"causes": '
    yield from array(map(_cause, module.causes))
    yield ',\n"live_at_peak": '
    yield from array(map(_live, module.live))
    yield "}"


def _side(module: ComparedModule) -> dict[str, object]:
    return {
        "path": module.path,
        "name": module.name,
        "chip": module.chip,
        "chip_assumed": module.chip_assumed,
        "truncated": module.truncated,
        "instructions": module.instructions,
        "unmatched": module.unmatched,
        "donated_outputs": module.donated,
        "unknown_trip_counts": module.unknown_trip_counts,
        "figures": figures(module.figures),
    }


def figures(value: Figures) -> dict[str, object]:
    """The figures of a module, as all reports for programs have them."""
    return {
        "step_seconds": finite(value.step_seconds),
        "exposed_collective_seconds": finite(value.exposed_collective_seconds),
        "hbm_bytes": value.hbm_bytes,
        "wire_bytes": value.wire_bytes,
        "dot_flops": value.dot_flops,
        "f32_dot_flops": value.f32_dot_flops,
        "peak_hbm_bytes": value.peak_hbm_bytes,
        "argument_bytes": value.argument_bytes,
        "output_bytes": value.output_bytes,
        "buffer_bytes": value.buffer_bytes,
        "padding_bytes": value.padding_bytes,
        "collectives": dict(value.collectives),
    }


def _cause(cause: Cause) -> dict[str, object]:
    return {
        "kind": cause.kind,
        "message": cause.message,
        "source": source(cause.source),
        "source_is_new": cause.source_is_new,
        "op_name": cause.op_name,
        "seconds": finite(cause.seconds),
        "hbm_bytes": cause.hbm_bytes,
        "changes": [_change(change) for change in cause.changes],
    }


def _change(change: Change) -> dict[str, object]:
    return {"old": _instruction(change.old), "new": _instruction(change.new)}


def _instruction(side: Side | None) -> dict[str, object] | None:
    if side is None:
        return None
    return {
        "computation": side.computation,
        "instruction": side.instruction,
        "opcode": side.opcode,
        "hlo_line": side.hlo_line,
        "shape": side.shape,
        "seconds": finite(side.seconds),
        "hbm_bytes": side.hbm_bytes,
        "times_per_step": side.times_per_step,
    }


def _live(change: LiveChange) -> dict[str, object]:
    return {
        "shape": change.shape,
        "kind": change.kind,
        "old_count": change.old_count,
        "new_count": change.new_count,
        "old_bytes": change.old_bytes,
        "new_bytes": change.new_bytes,
        "instruction": change.instruction,
        "source": source(change.source),
    }

"""Compares two modules: totals, causes and memory."""

from dataclasses import dataclass

from hlo_tools.analysis.figures import figures
from hlo_tools.analysis.program import Program
from hlo_tools.comparison import ComparedModule, ModuleComparison
from hlo_tools.diff.causes import causes
from hlo_tools.diff.graph import Graph
from hlo_tools.diff.matching import Matching
from hlo_tools.diff.memory import live_changes
from hlo_tools.errors import InputError
from hlo_tools.hardware import Chip, choose_chip
from hlo_tools.hlo.module import Module
from hlo_tools.hlo.parser import parse_module
from hlo_tools.hlo.provenance import Provenance
from hlo_tools.io import ModuleText


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ReadModule:
    """A module that was read, to be compared.

    Attributes:
      path: where it was read from.
      first_line: 1-based line of the file on which it starts.
      truncated: the file ended in the middle.
      module: the module.
    """

    path: str
    first_line: int
    truncated: bool
    module: Module


@dataclass(frozen=True, slots=True, kw_only=True)
class Modelling:
    """How modules are modelled: see the attributes of the same names of `Settings`."""

    chip: str | None = None
    library_paths: tuple[str, ...] = ()
    own_paths: tuple[str, ...] = ()


def read_module(item: ModuleText) -> ReadModule:
    """Reads the text of one module.

    Raises:
      ParseError: the text holds no computation.
    """
    return ReadModule(
        path=item.path,
        first_line=item.start_line,
        truncated=item.truncated,
        module=parse_module(item.text, path=item.path),
    )


def compare(old: ReadModule, new: ReadModule, modelling: Modelling) -> ModuleComparison:
    """Compares two compiles of one program.

    Where only one of them tells its chip, it is that of the other too: otherwise the figures would
    say what the chips differ in, and nothing about the programs.

    Raises:
      InputError: one of them is not what the compiler made, or there is no such chip.
    """
    chips = [choose_chip(side.module, modelling.chip) for side in (old, new)]
    known = [chip for chip, assumed in chips if chip is not None and not assumed]
    if len(known) == 1:
        chips = [(known[0], False) if assumed else (chip, assumed) for chip, assumed in chips]
    programs = [
        _program(side, chip, modelling) for side, (chip, _) in zip((old, new), chips, strict=True)
    ]
    matching = Matching(*programs)
    paired = len(matching.pairs)
    return ModuleComparison(
        old=_compared(old, matching.old, paired, chips[0][1]),
        new=_compared(new, matching.new, paired, chips[1][1]),
        causes=causes(matching, (old.first_line, new.first_line)),
        live=live_changes(matching),
    )


def _program(side: ReadModule, chip: Chip | None, modelling: Modelling) -> Program:
    provenance = Provenance(
        side.module, library_paths=modelling.library_paths, own_paths=modelling.own_paths
    )
    program = Program(side.module, chip=chip, provenance=provenance)
    if side.module.truncated and not any(program.cost.priced):
        raise InputError(
            f"module `{side.module.name}` is cut off before anything that its step runs",
            path=side.path,
        )
    if not program.optimized:
        raise InputError(
            f"module `{side.module.name}` is not optimised yet: compare what the compiler made of "
            "it, for example the `*.after_optimizations.txt` beside it",
            path=side.path,
        )
    return program


def _compared(side: ReadModule, graph: Graph, paired: int, assumed: bool) -> ComparedModule:
    program = graph.program
    return ComparedModule(
        path=side.path,
        name=side.module.name,
        chip=program.chip.name if program.chip else None,
        chip_assumed=assumed,
        truncated=side.truncated or side.module.truncated,
        instructions=len(graph.nodes),
        unmatched=len(graph.nodes) - paired,
        donated=program.liveness.donated_outputs,
        unknown_trip_counts=len(program.execution.unknown_loops),
        figures=figures(program),
    )

"""Compiled programs, as what is linted."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from hlo_tools.aot.compiling import Compilation, CompiledProgram, compile_all
from hlo_tools.errors import InputError
from hlo_tools.io import read_inputs
from hlo_tools.progress import Progress
from hlo_tools.run import Subject


def compiled_subjects(
    compilations: Sequence[Compilation], keep: Path | None, progress: Progress
) -> Iterator[Subject | InputError]:
    """Compiles, and yields the programs in the order given, read from their dumps.

    A program whose dump is not kept goes by the name of its function and topology.

    Args:
      compilations: functions and topologies.
      keep: a directory for the dumps; `None` if they go when they are read.
      progress: told what is being done.
    """
    progress.update("compiling", str(compilations[0]))
    for number, program in enumerate(compile_all(compilations, keep), start=1):
        if isinstance(program, InputError):
            yield program
        else:
            yield from _read(program)
        if number < len(compilations):
            progress.update("compiling", str(compilations[number]))


def _read(program: CompiledProgram) -> Iterator[Subject | InputError]:
    for item in read_inputs([str(program.folder)]):
        if isinstance(item, InputError):
            yield InputError(f"`{program.compilation}`: its dump: {item.message}")
            continue
        yield Subject(
            module=item if program.kept else replace(item, path=str(program.compilation)),
            chip=program.compilation.topology.chip,
            refusal=program.refusal,
        )

"""Compiled programs, as what is linted."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from hlo_tools.analysis.memory_refusal import MemoryRefusal
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
    compilation = program.compilation
    for item in dump_subjects(program.folder, compilation.topology.chip, program.refusal):
        if program.kept or isinstance(item, InputError):
            yield item
        else:
            yield renamed(item, str(compilation))


def dump_subjects(
    folder: Path, chip: str, refusal: MemoryRefusal | None
) -> Iterator[Subject | InputError]:
    """Yields what the compiler left in a folder.

    Args:
      folder: XLA's dump of one program.
      chip: what it was compiled for.
      refusal: what the compiler said, if it ran out of device memory.
    """
    for item in read_inputs([str(folder)]):
        if isinstance(item, InputError):
            yield item
        else:
            yield Subject(module=item, chip=chip, refusal=refusal)


def renamed(subject: Subject, name: str) -> Subject:
    """The same under the name of its program, for where the file will be gone."""
    return replace(subject, module=replace(subject.module, path=name))

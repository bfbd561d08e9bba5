"""From what the user names to the texts of HLO modules, one at a time.

Files (text or proto, packed or not), directories, XLA dump folders and standard input; inputs that
cannot be read become errors among the texts, so that one of them never stops the rest.
"""

import stat
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from hlo_tools.errors import InputError
from hlo_tools.reading.dump_names import select_modules
from hlo_tools.reading.extract import extract_modules
from hlo_tools.reading.limits import Limits
from hlo_tools.reading.proto import print_module
from hlo_tools.reading.sniff import (
    TEXT_HEAD_CHARACTERS,
    NotHloError,
    is_module_proto,
    not_hlo,
    refuse_foreign_bytes,
)
from hlo_tools.reading.streams import read_content
from hlo_tools.reading.text import decode

__all__ = ["Limits", "ModuleText", "NotHloError", "read_inputs"]

STDIN = "-"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModuleText:
    r"""The text of one module.

    Attributes:
      path: the file as the user spelt it, or the file found in a directory; `-` is standard input.
      text: HLO text with `\n` line ends, from the `HloModule` line where there is one.
      start_line: 1-based line of the file on which `text` starts.
      truncated: the file itself ended early (a gzip stream that was cut off).
    """

    path: str
    text: str
    start_line: int = 1
    truncated: bool = False


def read_inputs(
    paths: Sequence[str], *, limits: Limits | None = None, stdin: BinaryIO | None = None
) -> Iterator[ModuleText | InputError]:
    """Yields the modules that the paths hold, in order, reading one file at a time.

    In a directory, and in all below it, what is not HLO is passed over, and of the stages of one
    module in an XLA dump folder only the last is read.

    Args:
      paths: files and directories; `-` is standard input.
      limits: bounds on each input.
      stdin: what `-` reads; the process's own standard input by default.

    Yields:
      Modules; and for each input that cannot be read, an error that is not raised: a `NotHloError`
      where it is something else than HLO, another `InputError` where it cannot be used.
    """
    limits = limits or Limits()
    for path in paths:
        if path == STDIN:
            yield from _read_stream(stdin or sys.stdin.buffer, path, limits)
            continue
        if not path or "\0" in path:
            yield InputError("this cannot be read: it is no path of a file", path=path)
            continue
        try:
            is_directory = stat.S_ISDIR(Path(path).stat().st_mode)
        except OSError as error:
            yield _unreadable(error, path)
            continue
        if is_directory:
            yield from _read_directory(path, limits)
        else:
            yield from _read_file(path, limits)


def _read_directory(root: str, limits: Limits) -> Iterator[ModuleText | InputError]:
    found = 0
    foreign: list[NotHloError] = []
    for entry in _files_below(Path(root)):
        if isinstance(entry, InputError):
            found += 1
            yield entry
            continue
        for item in _read_file(str(entry), limits):
            if isinstance(item, NotHloError):
                foreign.append(item)
            else:
                found += 1
                yield item
    if not found:
        example = f"; of `{foreign[0].path}`: {foreign[0].message}" if foreign else ""
        yield InputError(f"this directory holds no HLO module{example}", path=root)


def _files_below(root: Path) -> Iterator[Path | InputError]:
    """The regular files worth opening below a directory, each once, in the order of their names.

    Hidden files and directories are left out. Links are followed, loops are not.
    """
    visited: set[tuple[int, int]] = set()
    pending = [root]
    while pending:
        directory = pending.pop()
        files: dict[str, Path] = {}
        directories: list[Path] = []
        try:
            entries = sorted(directory.iterdir())
        except OSError as error:
            yield _unreadable(error, str(directory))
            continue
        for entry in entries:
            if entry.name.startswith("."):
                continue
            try:
                status = entry.stat()
            except OSError:
                continue  # a dangling link, or gone since the directory was listed
            identity = (status.st_dev, status.st_ino)
            if identity in visited:
                continue
            if stat.S_ISDIR(status.st_mode):
                visited.add(identity)
                directories.append(entry)
            elif stat.S_ISREG(status.st_mode):
                visited.add(identity)
                files[entry.name] = entry
        for name in select_modules(files):
            yield files[name]
        pending += reversed(directories)


def _read_file(path: str, limits: Limits) -> Iterator[ModuleText | InputError]:
    try:
        with Path(path).open("rb", buffering=0) as stream:
            yield from _read_stream(stream, path, limits)
    except OSError as error:
        yield _unreadable(error, path)


def _read_stream(stream: BinaryIO, path: str, limits: Limits) -> Iterator[ModuleText | InputError]:
    try:
        text, truncated = _read_text(stream, path, limits)
        head = text[:TEXT_HEAD_CHARACTERS]
        modules = extract_modules(text, path=path)
        del text  # `extract_modules` lets go of it before it yields the last module
        found = False
        for piece, line in modules:
            found = True
            yield ModuleText(path=path, text=piece, start_line=line, truncated=truncated)
        if not found:
            yield not_hlo(head, path=path)
    except OSError as error:
        yield _unreadable(error, path)
    except InputError as error:
        yield error


def _read_text(stream: BinaryIO, path: str, limits: Limits) -> tuple[str, bool]:
    content = read_content(
        stream,
        path=path,
        limits=limits,
        refuse=lambda head: refuse_foreign_bytes(head, path=path),
    )
    if is_module_proto(content.data):
        return print_module(content.data, path=path, limits=limits), content.truncated
    return decode(content.data), content.truncated


def _unreadable(error: OSError, path: str) -> InputError:
    return InputError(f"this cannot be read: {error.strerror or error}", path=path)

"""From what the user names to the texts of HLO modules, one at a time.

Files (text or proto, packed or not), directories, XLA dump folders, URLs of these and standard
input; inputs that cannot be read become errors among the texts, so that one of them never stops the
rest.
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
from hlo_tools.reading.remote import is_url, list_remote, open_remote
from hlo_tools.reading.sniff import (
    TEXT_HEAD_CHARACTERS,
    NotHloError,
    is_module_proto,
    not_hlo,
    refuse_foreign_bytes,
)
from hlo_tools.reading.streams import read_content
from hlo_tools.reading.text import decode

__all__ = [
    "Limits",
    "Listing",
    "ModuleText",
    "NotHloError",
    "list_inputs",
    "nothing_found",
    "read_file",
    "read_inputs",
]

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """The files of one thing that the user names.

    Attributes:
      root: what the user named, if that is a directory; else `None`.
      files: paths or URLs of files, none of them opened yet, and errors of what cannot be listed.
    """

    root: str | None
    files: Iterator[str | InputError]


def read_inputs(
    paths: Sequence[str], *, limits: Limits | None = None, stdin: BinaryIO | None = None
) -> Iterator[ModuleText | InputError]:
    """Yields the modules that the paths hold, in order, reading one file at a time.

    In a directory, and in all below it, what is not HLO is passed over, and of the stages of one
    module in an XLA dump folder only the last is read.

    Args:
      paths: files and directories, also as URLs that fsspec knows; `-` is standard input.
      limits: bounds on each input.
      stdin: what `-` reads; the process's own standard input by default.

    Yields:
      Modules; and for each input that cannot be read, an error that is not raised: a `NotHloError`
      where it is something else than HLO, another `InputError` where it cannot be used.
    """
    for listing in list_inputs(paths):
        found = False
        foreign: NotHloError | None = None
        for file in listing.files:
            items = (
                iter((file,))
                if isinstance(file, InputError)
                else read_file(file, limits=limits, stdin=stdin)
            )
            for item in items:
                if listing.root is not None and isinstance(item, NotHloError):
                    foreign = foreign or item
                else:
                    found = True
                    yield item
                del item  # so that its text is gone while the next one is read
        if listing.root is not None and not found:
            yield nothing_found(listing.root, foreign)


def list_inputs(paths: Sequence[str]) -> Iterator[Listing]:
    """Yields the files of each path or URL, in order; see `read_inputs`."""
    for path in paths:
        if path == STDIN:
            yield Listing(root=None, files=iter((path,)))
        elif is_url(path):
            yield _listed(path, list_remote(path))
        elif not path or "\0" in path:
            error = InputError("this cannot be read: it is no path of a file", path=path)
            yield Listing(root=None, files=iter((error,)))
        else:
            try:
                is_directory = stat.S_ISDIR(Path(path).stat().st_mode)
            except OSError as error:
                yield Listing(root=None, files=iter((_unreadable(error, path),)))
                continue
            yield _listed(path, _files_below(Path(path)) if is_directory else None)


def _listed(path: str, below: Iterator[str | InputError] | None) -> Listing:
    if below is None:
        return Listing(root=None, files=iter((path,)))
    return Listing(root=path, files=below)


def nothing_found(root: str, foreign: NotHloError | None) -> InputError:
    """The error of a directory without HLO; `foreign` is that of a file in it, if it has any."""
    example = f"; of `{foreign.path}`: {foreign.message}" if foreign else ""
    return InputError(f"this directory holds no HLO module{example}", path=root)


def _files_below(root: Path) -> Iterator[str | InputError]:
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
            yield str(files[name])
        pending += reversed(directories)


def read_file(
    path: str, *, limits: Limits | None = None, stdin: BinaryIO | None = None
) -> Iterator[ModuleText | InputError]:
    """Yields the modules of one file, as `read_inputs` does; the file is opened first thing."""
    limits = limits or Limits()
    if path == STDIN:
        yield from _read_stream(stdin or sys.stdin.buffer, path, limits)
        return
    try:
        with open_remote(path) if is_url(path) else Path(path).open("rb", buffering=0) as stream:
            yield from _read_stream(stream, path, limits)
    except OSError as error:
        yield _unreadable(error, path)
    except InputError as error:
        yield error


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

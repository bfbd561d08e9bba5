"""The user's own source files, read only inside one directory.

A dump names files as the machine that compiled it saw them, and a hostile one may name anything.
Only what lies under the source root is opened, and only program text.
"""

import io
import stat
import tokenize
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from hlo_tools.errors import SettingsError

# Languages in which `#` starts a comment and from which XLA programs are made. Nothing else is
# opened, so that a dump cannot have the line of a key file printed into a log.
SOURCE_SUFFIXES = frozenset({".py", ".pyi", ".pyw", ".jl"})
MAX_SOURCE_BYTES = 8_000_000
MAX_PATH_PARTS = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceTree:
    """Source files under one directory, by the paths that dumps give them.

    A path that does not exist as it stands is matched by its longest suffix that does exist under
    the root: `/home/ci/project/model/mlp.py` may be `model/mlp.py` here. Answers are kept, since
    thousands of findings name a handful of files.

    Attributes:
      root: the directory; nothing outside it is read, by whatever links.
      base: the directory to which shown paths are relative, where they lie in it.
    """

    root: Path
    base: Path
    _paths: dict[str, Path | None] = field(default_factory=dict)
    _shown: dict[str, str | None] = field(default_factory=dict)
    _lines: dict[Path, tuple[str, ...] | None] = field(default_factory=dict)

    @classmethod
    def open(cls, root: Path) -> "SourceTree":
        """Returns the tree under `root`, showing paths from the working directory.

        Raises:
          SettingsError: `root` is no directory.
        """
        if not root.is_dir():
            raise SettingsError("source root is no directory", path=str(root))
        return cls(root=root.resolve(), base=Path.cwd().resolve())

    def path(self, file: str) -> Path | None:
        """Returns the file that a dump calls `file`, or `None` if it is not under the root."""
        if file not in self._paths:
            self._paths[file] = self._find(file)
        return self._paths[file]

    def display(self, file: str) -> str | None:
        """Returns the path to show for `file`: relative to the base if there, else absolute."""
        if file not in self._shown:
            path = self.path(file)
            if path is not None and path.is_relative_to(self.base):
                path = path.relative_to(self.base)
            self._shown[file] = None if path is None else path.as_posix()
        return self._shown[file]

    def line(self, file: str, number: int) -> str | None:
        """Returns the text of a 1-based line of `file`, or `None` if it cannot be read."""
        lines = self.lines(file)
        return lines[number - 1] if 1 <= number <= len(lines) else None

    def lines(self, file: str) -> tuple[str, ...]:
        """Returns the lines of `file` without their line ends; none if it cannot be read."""
        path = self.path(file)
        if path is None:
            return ()
        if path not in self._lines:
            self._lines[path] = _read_lines(path)
        return self._lines[path] or ()

    def _find(self, file: str) -> Path | None:
        parts = PurePosixPath(file if "/" in file else file.replace("\\", "/")).parts
        if not parts or PurePosixPath(parts[-1]).suffix not in SOURCE_SUFFIXES:
            return None
        if len(parts) > MAX_PATH_PARTS or "\0" in file:
            return None
        exact = Path(file)
        if exact.is_absolute():
            parts = parts[1:]
            known = _resolve_file(exact)
            if known is not None:
                # It is here, so it is this file and no namesake under the root.
                return known if known.is_relative_to(self.root) else None
        for start in range(len(parts)):
            candidate = _resolve_file(self.root.joinpath(*parts[start:]))
            if candidate is not None and candidate.is_relative_to(self.root):
                return candidate
        return None


def _resolve_file(path: Path) -> Path | None:
    """Returns the real path of a regular source file of readable size, or `None`."""
    try:
        resolved = path.resolve(strict=True)
        status = resolved.stat()
    except (OSError, RuntimeError):  # RuntimeError: a loop of links, before Python 3.13
        return None
    readable = stat.S_ISREG(status.st_mode) and status.st_size <= MAX_SOURCE_BYTES
    return resolved if readable and resolved.suffix in SOURCE_SUFFIXES else None


def _read_lines(path: Path) -> tuple[str, ...] | None:
    try:
        with path.open("rb") as stream:
            data = stream.read(MAX_SOURCE_BYTES + 1)
    except OSError:
        return None
    if len(data) > MAX_SOURCE_BYTES:
        return None
    text = _decode(data)
    # Not `splitlines`: to Python a form feed or U+2028 ends no line.
    return tuple(text.replace("\r\n", "\n").replace("\r", "\n").split("\n"))


def _decode(data: bytes) -> str:
    """Decodes by the coding cookie (PEP 263); what cannot be decoded is replaced."""
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
        return data.decode(encoding)
    except (SyntaxError, UnicodeError, LookupError):
        return data.decode("utf-8", "replace")

"""Files that are written whole or not at all."""

import secrets
from collections.abc import Iterable
from pathlib import Path


def write_whole(path: Path, pieces: Iterable[str]) -> None:
    """Writes text as UTF-8 to `path`, by way of a temporary file in the same directory.

    A reader sees the old file or the new one, never a part. A symbolic link keeps pointing where
    it did, a file keeps its permissions, and what is no regular file (`/dev/null`, a pipe) is
    written in place.

    Raises:
      OSError: the file cannot be written.
    """
    target = path.resolve()
    if target.exists() and not target.is_file():
        with target.open("w", encoding="utf-8", newline="") as stream:
            stream.writelines(pieces)
        return
    temporary = target.with_name(f".{target.name[:64]}.{secrets.token_hex(8)}.tmp")
    try:
        with temporary.open("x", encoding="utf-8", newline="") as stream:
            stream.writelines(pieces)
        if target.exists():
            temporary.chmod(target.stat().st_mode)
        temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise

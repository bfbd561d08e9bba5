"""Files and directories behind URLs (`gs://`, `s3://`, ...), by way of fsspec."""

import posixpath
import re
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO

from hlo_tools.errors import InputError
from hlo_tools.reading.dump_names import select_modules

# A scheme of one letter would be a drive of Windows. `a::b://c` is fsspec's way to put
# one file system into another, such as a cache.
_SCHEME = r"[A-Za-z][A-Za-z0-9+.\-]+"
_URL = re.compile(rf"(?:{_SCHEME}::)*{_SCHEME}://")


def is_url(path: str) -> bool:
    """Whether a path is a URL that is left to fsspec."""
    return _URL.match(path) is not None


@contextmanager
def open_remote(url: str) -> Iterator[BinaryIO]:
    """Opens the file at a URL, and closes it.

    Raises:
      InputError: fsspec is not installed, or not what it needs for this scheme.
      OSError: the file cannot be opened.
    """
    files, path = _connected(url)
    with files.open(path, "rb") as stream:
        yield stream


def list_remote(url: str) -> Iterator[str | InputError] | None:
    """The URLs of the files worth opening below a directory, as for directories of this machine.

    Returns:
      `None` where the URL is that of no directory; whether there is a file is seen on opening it.
    """
    try:
        files, path = _connected(url)
        if path and not files.isdir(path):  # an archive has its root at ""
            return None
        found = files.find(path)
    except OSError as error:
        return iter((InputError(f"this cannot be listed: {error.strerror or error}", path=url),))
    except InputError as error:
        return iter((error,))
    return _selected(url, path, found)


def _selected(url: str, root: str, found: list[str]) -> Iterator[str | InputError]:
    folders: defaultdict[str, dict[str, str]] = defaultdict(dict)
    for file in found:
        below = posixpath.relpath(file, root)
        folder, name = posixpath.split(below)
        if not any(part.startswith(".") for part in below.split("/")):
            folders[folder][name] = below
    first, chain, rest = url.partition("::")
    base = first if first.endswith("://") else first.rstrip("/") + "/"
    for folder in sorted(folders, key=lambda folder: folder.split("/") if folder else []):
        for name in select_modules(folders[folder]):
            yield f"{base}{folders[folder][name]}{chain}{rest}"


def _connected(url: str) -> tuple[Any, str]:
    """The file system of a URL, and the path in it."""
    try:
        from fsspec.core import url_to_fs
    except ImportError as error:
        message = "this is a URL, which needs fsspec: pip install 'hlo-tools[remote]'"
        raise InputError(message, path=url) from error
    try:
        files, path = url_to_fs(url)
    except (ImportError, ValueError) as error:  # what this scheme needs, or an unknown scheme
        raise InputError(f"this URL cannot be opened: {error}", path=url) from error
    return files, path

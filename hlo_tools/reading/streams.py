"""Bounded reading of bytes: plain files, pipes and gzip, recognised by content."""

import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import BinaryIO

from hlo_tools.errors import InputError
from hlo_tools.reading.limits import MIB, Limits

GZIP_MAGIC = b"\x1f\x8b"

# What is looked at to tell what an input is, before the rest is read.
HEAD_BYTES = 64 << 10

_READ_BYTES = 8 * MIB
# zlib copies what follows a gzip member; small pieces keep many small members from costing
# quadratic time.
_INFLATE_BYTES = 64 << 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """The unpacked bytes of one input.

    Attributes:
      data: all of it.
      truncated: a gzip stream that ended early; `data` is what came before.
    """

    data: bytearray
    truncated: bool


def read_content(
    stream: BinaryIO, *, path: str, limits: Limits, refuse: Callable[[bytes], None]
) -> Content:
    """Reads a stream to its end, unpacking gzip.

    Args:
      stream: a binary file or pipe; a short read does not mean the end.
      path: named in errors.
      limits: bounds on the size after unpacking.
      refuse: called with the first `HEAD_BYTES` of unpacked data; raises `InputError` where
        reading on is useless, so that endless input of the wrong kind costs nothing.

    Raises:
      InputError: `refuse` raised it, a limit was exceeded, or the gzip stream is corrupt.
      OSError: the stream could not be read.
    """
    packed = _pieces(stream)
    first = next(packed, b"")
    while len(first) < len(GZIP_MAGIC) and (more := next(packed, b"")):
        first += more
    if first.startswith(GZIP_MAGIC):
        inflater = _Inflater(path=path, limits=limits)
        pieces = inflater.unpack(_chain(first, packed))
    else:
        inflater = None
        pieces = _chain(first, packed)

    data = bytearray()
    checked = False
    for piece in pieces:
        data += piece
        if not checked and len(data) >= HEAD_BYTES:
            checked = True
            refuse(bytes(data[:HEAD_BYTES]))
        if len(data) > limits.max_bytes:
            raise InputError(
                f"this is larger than the limit of {limits.max_bytes} bytes for one input",
                path=path,
            )
    if not checked:
        refuse(bytes(data))
    return Content(data=data, truncated=inflater is not None and inflater.truncated)


def _pieces(stream: BinaryIO) -> Iterator[bytes]:
    """The bytes of a stream; the first piece is small, so that a pipe is judged early."""
    size = HEAD_BYTES
    while piece := stream.read(size):
        yield piece
        size = _READ_BYTES


def _chain(first: bytes, rest: Iterator[bytes]) -> Iterator[bytes]:
    if first:
        yield first
    yield from rest


class _Inflater:
    """Unpacks the members of one gzip file and keeps account of them."""

    def __init__(self, *, path: str, limits: Limits) -> None:
        self.truncated = False
        self._path = path
        self._limits = limits
        self._packed = 0
        self._unpacked = 0
        self._members = 0

    def unpack(self, pieces: Iterator[bytes]) -> Iterator[bytes]:
        """Yields unpacked pieces; ends quietly, with `truncated` set, where the stream is cut off.

        Raises:
          InputError: the stream is corrupt or unpacks to more than the limits allow.
        """
        member = self._next_member()
        for piece in pieces:
            for start in range(0, len(piece), _INFLATE_BYTES):
                pending = piece[start : start + _INFLATE_BYTES]
                self._packed += len(pending)
                while pending:
                    if member.eof:
                        # RFC 1952 allows members one after another; padding and whatever
                        # else follows the last one is ignored, as gzip(1) does.
                        pending = pending.lstrip(b"\0")
                        if not GZIP_MAGIC.startswith(pending[:2]):
                            return
                        if not pending:
                            break
                        member = self._next_member()
                    yield self._inflate(member, pending)
                    pending = member.unconsumed_tail or member.unused_data
        self.truncated = not member.eof

    def _next_member(self) -> "zlib._Decompress":
        self._members += 1
        if self._members > self._limits.max_gzip_members:
            raise InputError(
                f"this is a gzip file of more than {self._limits.max_gzip_members} members",
                path=self._path,
            )
        return zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)

    def _inflate(self, member: "zlib._Decompress", data: bytes) -> bytes:
        try:
            unpacked = member.decompress(data, _READ_BYTES)
        except zlib.error:
            raise InputError(
                f"this is a corrupt gzip file: unpacking failed after {self._unpacked} bytes",
                path=self._path,
            ) from None
        self._unpacked += len(unpacked)
        allowed = max(self._limits.gzip_ratio_floor, self._packed * self._limits.max_gzip_ratio)
        if self._unpacked > allowed:
            raise InputError(
                "this is a gzip file that unpacks to more than "
                f"{self._limits.max_gzip_ratio} times its size",
                path=self._path,
            )
        return unpacked

"""The bounds that input of any kind stays under."""

from dataclasses import dataclass

MIB = 1 << 20
GIB = 1 << 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How much of an input is read before it is refused.

    Attributes:
      max_bytes: bytes of one file after unpacking. Reading needs about twice this in memory.
      max_gzip_ratio: bytes unpacked per byte packed. HLO text reaches 30; deflate cannot
        exceed 1032, which only input made for it comes near.
      gzip_ratio_floor: bytes that may be unpacked before the ratio counts.
      max_gzip_members: members of one gzip file; block-wise writers make one per 64 KiB.
      proto_seconds: time that jaxlib may take to print one module.
    """

    max_bytes: int = 2 * GIB
    max_gzip_ratio: int = 400
    gzip_ratio_floor: int = 64 * MIB
    max_gzip_members: int = 1 << 16
    proto_seconds: float = 600.0

"""Bytes of any kind are unpacked and decoded, or refused, within the limits."""

import gzip
import io
import os
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st
from inputs import SMALL, message, modules, read, time_limit

from hlo_tools.errors import InputError
from hlo_tools.io import Limits, ModuleText, read_inputs
from hlo_tools.reading.text import decode

PACKED = gzip.compress(SMALL.encode())


def test_gzip_is_known_by_its_content() -> None:
    assert modules(read(PACKED)) == [(1, SMALL)]


def test_gzip_members_are_joined() -> None:
    halves = [SMALL[:100].encode(), b"", SMALL[100:].encode()]
    assert modules(read(b"".join(map(gzip.compress, halves)))) == [(1, SMALL)]


@pytest.mark.parametrize("tail", [b"\0" * 512, b"\0" * 3 + b"rubbish", b"rubbish"])
def test_what_follows_a_gzip_stream_is_ignored(tail: bytes) -> None:
    assert modules(read(PACKED + tail)) == [(1, SMALL)]


@pytest.mark.parametrize("cut", range(2, len(PACKED)))
def test_a_cut_off_gzip_stream_keeps_what_was_read(cut: int) -> None:
    """Text that came out is a beginning of the module, and is marked as truncated."""
    (item,) = read(PACKED[:cut])
    if isinstance(item, InputError):
        assert item.message in ("this is empty", *_NO_MODULE)
    else:
        assert SMALL.startswith(item.text)
        assert item.truncated


_NO_MODULE = (
    "this text holds no HLO module: no line starts with `HloModule`, `ENTRY` or a computation",
)


def test_a_whole_gzip_stream_is_not_truncated() -> None:
    (item,) = read(PACKED)
    assert isinstance(item, ModuleText)
    assert not item.truncated


@given(st.integers(10, len(PACKED) - 1), st.integers(1, 255))
def test_a_damaged_gzip_stream_never_raises(at: int, flip: int) -> None:
    damaged = bytearray(PACKED)
    damaged[at] ^= flip
    for item in read(bytes(damaged)):
        assert isinstance(item, InputError | ModuleText)


def test_a_damaged_checksum_is_told() -> None:
    damaged = PACKED[:-8] + bytes(4) + PACKED[-4:]
    assert message(read(damaged)).startswith("this is a corrupt gzip file: unpacking failed after")


def test_gzip_bombs_stop_at_the_ratio() -> None:
    limits = Limits(gzip_ratio_floor=1 << 16, max_gzip_ratio=100)
    bomb = gzip.compress(SMALL.encode() + b" " * 10_000_000)
    tracemalloc.start()
    assert "unpacks to more than 100 times" in message(read(bomb, limits=limits))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 40 << 20
    assert modules(read(gzip.compress(SMALL.encode() * 9), limits=limits))


def test_many_gzip_members_stop_at_the_limit() -> None:
    limits = Limits(max_gzip_members=10)
    assert "more than 10 members" in message(read(gzip.compress(b"") * 11, limits=limits))
    with time_limit(seconds=30):
        assert "members" in message(read(gzip.compress(b"") * 100_000))


@pytest.mark.parametrize("more", [-1, 0, 1])
def test_output_in_several_pieces_is_whole(more: int) -> None:
    """A member that unpacks to about one piece of output, which zlib is asked for at a time."""
    text = SMALL.ljust((8 << 20) + more)
    ((_, found),) = modules(read(gzip.compress(text.encode(), 9)))
    assert len(found) == len(text)


def test_larger_input_than_the_limit_is_refused() -> None:
    limits = Limits(max_bytes=len(SMALL) - 1)
    assert f"larger than the limit of {len(SMALL) - 1} bytes" in message(read(SMALL, limits=limits))
    assert "larger" in message(read(PACKED, limits=limits))
    assert modules(read(SMALL, limits=Limits(max_bytes=len(SMALL))))


class Endless(io.RawIOBase):
    """A stream without an end, which counts what was taken."""

    def __init__(self, unit: bytes) -> None:
        self.unit = unit
        self.taken = 0

    def read(self, size: int = -1) -> bytes:
        assert size >= 0
        self.taken += size
        return (self.unit * (size // len(self.unit) + 1))[:size]


@pytest.mark.parametrize("unit", [b"\0", bytes(range(256)), b"\xff", b"PK\x03\x04" + bytes(9)])
def test_endless_input_of_a_wrong_kind_is_refused_at_once(unit: bytes) -> None:
    stream = Endless(unit)
    (item,) = read_inputs(["-"], stdin=stream)  # type: ignore[arg-type]
    assert isinstance(item, InputError)
    assert stream.taken <= 1 << 20


def test_endless_text_stops_at_the_limit() -> None:
    stream = Endless(b"%a = f32[] add(%a, %a)\n")
    (item,) = read_inputs(["-"], stdin=stream, limits=Limits(max_bytes=1 << 24))  # type: ignore[arg-type]
    assert isinstance(item, InputError)
    assert stream.taken <= 1 << 26


def test_a_pipe_that_gives_little_at_a_time_is_read_to_its_end() -> None:
    class Slow(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            return super().read(min(size or 0, 7))

    items = list(read_inputs(["-"], stdin=Slow(PACKED)))
    assert modules(items) == [(1, SMALL)]


@pytest.mark.parametrize("log", ["", "compiling\n"])
def test_reading_takes_twice_the_text_in_memory(log: str) -> None:
    """Once the module is handed on, it is the only copy, also where it was cut out of a log."""
    text = log + SMALL.replace("train.py", "x" * (16 << 20))
    data = io.BytesIO(text.encode())
    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    for item in read_inputs(["-"], stdin=data):
        assert isinstance(item, ModuleText)
        held, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    # The stream's own pieces come on top of the bytes and the text.
    assert peak - before < 2.3 * len(text) + (16 << 20)
    assert held - before < 1.2 * len(text)


@pytest.mark.parametrize(
    "data",
    [
        SMALL.encode("utf-8-sig"),
        SMALL.encode("utf-16"),
        b"\xfe\xff" + SMALL.encode("utf-16-be"),
        SMALL.replace("\n", "\r\n").encode(),
        SMALL.replace("\n", "\r\n").encode("utf-16"),
    ],
    ids=["utf-8-bom", "utf-16-le", "utf-16-be", "crlf", "utf-16-crlf"],
)
def test_encodings_and_line_ends_come_to_the_same(data: bytes) -> None:
    assert modules(read(data)) == [(1, SMALL)]


def test_bytes_that_are_no_utf8_stay_visible() -> None:
    data = SMALL.encode().replace(b"train", b"tr\xff\xc3in")
    assert modules(read(data)) == [(1, SMALL.replace("train", r"tr\xff\xc3in"))]


def test_nul_bytes_in_a_text_are_kept() -> None:
    text = SMALL.replace("train", "tr\0in")
    assert modules(read(text)) == [(1, text)]


@given(st.binary(max_size=200))
def test_decoded_text_can_be_encoded_again(data: bytes) -> None:
    text = decode(data)
    assert "\r\n" not in text
    assert decode(text.removeprefix("\ufeff").encode()) == text.removeprefix("\ufeff")


@given(st.text(st.characters(exclude_characters="\r", exclude_categories=("Cs",)), max_size=200))
def test_valid_text_is_decoded_as_it_is(text: str) -> None:
    assert decode(text.encode()) == text.removeprefix("\ufeff")


@given(st.binary(max_size=400))
def test_any_bytes_give_modules_or_errors(data: bytes) -> None:
    assert read(data)
    assert read(gzip.compress(data))


@given(st.integers(0, len(SMALL) - 1), st.integers(0, 255))
def test_any_changed_byte_gives_modules_or_errors(at: int, value: int) -> None:
    data = bytearray(SMALL.encode())
    data[at] = value
    assert read(bytes(data))


def test_random_bytes_are_refused() -> None:
    assert message(read(os.urandom(4096))) == "this is a binary file, not HLO"

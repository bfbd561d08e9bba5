"""HLO modules and ways to read them, shared by the tests of input."""

import contextlib
import io
import signal
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

from hlo_tools.errors import InputError
from hlo_tools.io import Limits, ModuleText, read_inputs

SMALL = """\
HloModule jit_f, is_scheduled=true, entry_computation_layout={(f32[8]{0})->f32[8]{0}}

FileNames
1 "/src/train.py"

%fused_computation (param_0: f32[8]) -> f32[8] {
  %param_0 = f32[8]{0} parameter(0)
  ROOT %add.1 = f32[8]{0} add(%param_0, %param_0)
}

ENTRY %main.2 (x: f32[8]) -> f32[8] {
  %x = f32[8]{0} parameter(0)
  ROOT %fusion = f32[8]{0} fusion(%x), kind=kLoop, calls=%fused_computation
}
"""
OTHER = SMALL.replace("jit_f", "jit_g")

Items = list[ModuleText | InputError]


def read(content: str | bytes, *, limits: Limits | None = None) -> Items:
    """Reads bytes as standard input."""
    data = content.encode() if isinstance(content, str) else content
    return list(read_inputs(["-"], limits=limits, stdin=io.BytesIO(data)))


def read_named(directory: Path, name: str, content: str | bytes) -> Items:
    """Reads bytes as a file of that name."""
    file = directory / name
    file.write_bytes(content.encode() if isinstance(content, str) else content)
    return list(read_inputs([str(file)]))


def modules(items: Items) -> list[tuple[int, str]]:
    """Start line and text of each; an error among them fails the test."""
    assert not [item for item in items if isinstance(item, InputError)], items
    return [(item.start_line, item.text) for item in items if isinstance(item, ModuleText)]


def message(items: Items) -> str:
    """The message of the only item, an error."""
    (item,) = items
    assert isinstance(item, InputError), item
    return item.message


@contextlib.contextmanager
def time_limit(*, seconds: int) -> Iterator[None]:
    """Fails what takes far longer than linear time can, without waiting for its end."""

    def stop(signal_number: int, frame: FrameType | None) -> None:
        raise TimeoutError(f"more than {seconds} s")

    previous = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, previous)

"""HLO modules as protocol buffers: recognised by content, printed as text by jaxlib.

The few fields that are looked at are those of xla/service/hlo.proto. The module is field 1 of
`HloProto` and `HloModuleProtoWithConfig`, and an `HloProto` is field 1 of `HloSnapshot`; of
`HloModuleProto`: `name` 1, `entry_computation_name` 2, `computations` 3, `device_assignment` 15.
"""

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

from hlo_tools.errors import InputError
from hlo_tools.reading.limits import Limits

if TYPE_CHECKING:
    import subprocess

# A snapshot holds a proto, which holds the module.
_MAX_WRAPPERS = 3
_MAX_NAME_BYTES = 4096
_MAX_REASON_CHARACTERS = 200

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5

# In a process of its own: malformed protos can end the process, XLA logs to its standard error,
# and jaxlib imports numpy. `-P` keeps the working directory out of the import path.
_PRINT_MODULE = """
import sys
from jaxlib import _hlo
module = _hlo.HloModule.from_serialized_hlo_module_proto(sys.stdin.buffer.read())
sys.stdout.buffer.write(module.to_string().encode("utf-8", "backslashreplace"))
"""

_Field = tuple[int, int | memoryview]


def holds_module(data: bytes | bytearray | memoryview) -> bool:
    """Whether these bytes, or a whole of which they are the beginning, are an HLO module proto."""
    return _find_module(memoryview(data)) is not None


def foreign_kind(data: bytes | memoryview) -> str | None:
    """What else a protocol buffer is, by its beginning: a profile or a graph, or `None`."""
    first = next(_fields(memoryview(data)), None)
    if first is None or first[0] != 1 or isinstance(first[1], int):
        return None
    inner = dict(_leading(first[1], 2))
    name = _name(inner.get(2))
    if name is None:
        return None
    if name.startswith("/") or name == "Task Environment":
        return "a profile (XSpace, `*.xplane.pb`)"
    if _name(inner.get(1)) is not None and name[:1].isupper():
        return "a TensorFlow graph (GraphDef)"
    return None


def print_module(data: bytes | bytearray, *, path: str, limits: Limits) -> str:
    """The text of the module that a proto holds.

    The printed text lacks what the proto keeps outside the module's configuration: the numbers
    of replicas and partitions are put back into the header.

    Args:
      data: bytes for which `holds_module` is true.
      path: named in errors.
      limits: how long printing may take.

    Raises:
      InputError: jaxlib is not installed, or cannot read these bytes.
    """
    import importlib.util  # text, the usual input, starts faster without these two
    import subprocess

    module = _find_module(memoryview(data))
    assert module is not None
    if importlib.util.find_spec("jaxlib") is None:
        raise InputError(
            "this is an HLO proto, and reading it needs jaxlib: install it with "
            "`pip install 'hlo-tools[aot]'`, or give the text form of the dump",
            path=path,
        )
    try:
        printed = subprocess.run(
            [sys.executable, "-P", "-c", _PRINT_MODULE],
            input=module,
            capture_output=True,
            timeout=limits.proto_seconds,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise InputError(
            f"this is an HLO proto that jaxlib did not print within {limits.proto_seconds:g} s",
            path=path,
        ) from None
    if printed.returncode != 0:
        raise InputError(
            f"this is an HLO proto that jaxlib cannot read: {_reason(printed)}", path=path
        )
    text = printed.stdout.decode("utf-8", errors="backslashreplace")
    return _with_devices(text, module)


def _reason(printed: "subprocess.CompletedProcess[bytes]") -> str:
    if printed.returncode < 0:
        return f"it ended with signal {-printed.returncode}"
    lines = printed.stderr.decode("utf-8", errors="backslashreplace").split("\n")
    told = [line for line in lines if line.strip()]
    return told[-1][:_MAX_REASON_CHARACTERS] if told else f"exit status {printed.returncode}"


def _with_devices(text: str, module: memoryview) -> str:
    devices: dict[int, int | memoryview] = {}
    for number, value in _fields(module):
        if number == 15 and not isinstance(value, int):
            devices = dict(_leading(value, 2))
    header, newline, rest = text.partition("\n")
    name, comma, attributes = header.partition(",")
    for number, attribute in ((2, "num_partitions"), (1, "replica_count")):
        count = devices.get(number)
        if isinstance(count, int) and count > 1 and f" {attribute}=" not in header:
            name += f", {attribute}={count}"
    return name + comma + attributes + newline + rest


def _find_module(data: memoryview) -> memoryview | None:
    for _ in range(_MAX_WRAPPERS):
        if _is_module(data):
            return data
        first = next(_fields(data), None)
        if first is None or first[0] != 1 or isinstance(first[1], int):
            return None
        data = first[1]
    return None


def _is_module(data: memoryview) -> bool:
    """Names where a module has names, and a computation whose first instruction has an opcode."""
    fields = dict(_leading(data, 3))
    computation = fields.get(3)
    if _name(fields.get(1)) is None or _name(fields.get(2)) is None:
        return False
    if computation is None or isinstance(computation, int):
        return False
    fields = dict(_leading(computation, 2))
    instruction = fields.get(2)
    if _name(fields.get(1)) is None or instruction is None or isinstance(instruction, int):
        return False
    fields = dict(_leading(instruction, 2))
    return _name(fields.get(1)) is not None and _name(fields.get(2)) is not None


def _name(value: int | memoryview | None) -> str | None:
    if value is None or isinstance(value, int) or not 0 < len(value) <= _MAX_NAME_BYTES:
        return None
    try:
        name = str(value, "utf-8")
    except UnicodeDecodeError:
        return None
    return name if name.isprintable() else None


def _leading(data: memoryview, last: int) -> Iterator[_Field]:
    """The fields numbered up to `last`, the first of each: protos are written in that order."""
    seen: set[int] = set()
    for number, value in _fields(data):
        if number > last:
            return
        if number not in seen:
            seen.add(number)
            yield number, value


def _fields(data: memoryview) -> Iterator[_Field]:
    """The fields of a message; stops without a word where the bytes are no message any more.

    A field that goes on past the end of the data is yielded as far as it goes.
    """
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        number, wire_type = key >> 3, key & 7
        if at < 0 or number == 0:
            return
        if wire_type == _VARINT:
            value, at = _varint(data, at)
            if at < 0:
                return
            yield number, value
        elif wire_type == _BYTES:
            length, at = _varint(data, at)
            if at < 0:
                return
            yield number, data[at : at + length]
            at += length
        elif wire_type == _FIXED64:
            at += 8
        elif wire_type == _FIXED32:
            at += 4
        else:
            return


def _varint(data: memoryview, at: int) -> tuple[int, int]:
    """The value at `at` and where it ends; the end is -1 where there is no varint."""
    value = 0
    for shift in range(0, 70, 7):
        if at >= len(data):
            break
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
    return 0, -1

"""What the sentences about changes are put together from."""

from hlo_tools.analysis.collectives import Collective
from hlo_tools.diff.kernels import Kernel
from hlo_tools.hlo.shape import Layout, Shape, format_layout, format_shape
from hlo_tools.report.units import format_bytes


def noun(kernel: Kernel) -> str:
    """What a kernel is, with its name: "matmul `%fusion.3`"; of a call into a library, which."""
    name = f"`%{kernel.instruction.name}`"
    if kernel.opcode == "custom-call":
        target = (kernel.instruction.attribute("custom_call_target") or "").strip('"')
        return f"custom call {name} (`{target}`)" if target else f"custom call {name}"
    work = kernel.work
    return f"matmul {name}" if work is not None and work.matmuls else f"{kernel.opcode} {name}"


def array(shape: Shape) -> str:
    """Type and dimensions in backticks; a tuple is named by its largest member."""
    return f"`{format_shape(largest(shape), with_layout=False)}`"


def largest(shape: Shape) -> Shape:
    """The largest array of a shape."""
    return max(shape.leaves(), key=lambda leaf: leaf.padded_bytes, default=shape)


def sent(collective: Collective) -> str:
    """What a collective carries, among whom, and how much of it."""
    size = f" over {collective.group_size} devices" if collective.group_size else ""
    wire = collective.wire_bytes
    sends = f" ({format_bytes(wire)} a device on the wire)" if wire is not None else ""
    return f"{collective.kind} of {array(collective.operation.shape)}{size}{sends}"


def often(times: int) -> str:
    """Returns `once` or `12 times`."""
    return "once" if times == 1 else f"{times:,} times"


def order(shape: Shape) -> tuple[object, ...]:
    """Order of dimensions and tiles: the layout but for the memory space."""
    layout = shape.layout
    return (layout.minor_to_major, layout.tiles) if layout is not None else ()


def layout(shape: Shape) -> str:
    """The layout without its memory space: `{1,0:T(8,128)}`."""
    layout = shape.layout
    if layout is None:
        return "{}"
    plain = Layout(minor_to_major=layout.minor_to_major, tiles=layout.tiles)
    return format_layout(plain)

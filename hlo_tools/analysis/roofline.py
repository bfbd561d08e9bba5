"""How long a piece of work takes a chip: formulae, with no module around them.

The constants are calibrated against `estimated_cycles` of libtpu 0.0.52, except where a source is
named; `benchmarks/cost_model.py` prints how far the result is from those estimates, and
docs/cost-model.md explains each.
"""

from hlo_tools.analysis.collectives import Collective
from hlo_tools.analysis.flops import Work
from hlo_tools.analysis.matmul import Matmul
from hlo_tools.analysis.traffic import Traffic
from hlo_tools.hardware import LANES, SUBLANES, Chip

HBM_EFFICIENCY = 0.8
"""Share of the published HBM bandwidth that a long stream reaches."""

STREAM_BYTES = 8
"""What each element that passes a TPU's vector unit costs, as bytes at the rate of HBM: a 32-bit
register in and one out, wherever the value lies and however narrow it is."""

RESULT_BYTES = 4
"""The same for each result that leaves a 128-wide matrix unit."""

WIDE_MXU = 256
"""From this width on matrix units add up their results in place."""

LAUNCH_SECONDS = 1.2e-6
"""Before an instruction's first data arrive and after its last leave: what the smallest TPU
fusions are reckoned at (v5e, v5p and v6e 1.2, 7x 1.0, v4 0.6 microseconds)."""

HOP_SECONDS = 1e-6
"""Latency of a hop between neighbours ("How to Scale Your Model", chapter on sharding)."""


LARGEST = 1 << 100
"""More bytes or operations than this are hostile text, and would not fit a float."""


def roofline_seconds(chip: Chip, work: Work | None, traffic: Traffic) -> float:
    """Seconds of an instruction that has the chip to itself: its slowest resource, and a start.

    0 for what neither computes nor moves anything.
    """
    busy = max(resource_seconds(chip, work, traffic).values())
    return busy + LAUNCH_SECONDS if busy else 0.0


def resource_seconds(chip: Chip, work: Work | None, traffic: Traffic) -> dict[str, float]:
    """Seconds for which an instruction keeps each resource of the chip busy.

    Returns:
      By resource: `memory` (device memory, or the way to the host), `stream` (registers that go
      through the vector unit), `vector` (its arithmetic), `matrix`.
    """
    matrix = sum(_matmul_seconds(chip, size) for size in work.matmuls) if work else 0.0
    return {
        "memory": transfer_seconds(chip, traffic),
        # A matrix unit is fed from VMEM as it goes.
        "stream": 0.0 if matrix else _stream_seconds(chip, traffic),
        "vector": _vector_seconds(chip, work) if work else 0.0,
        "matrix": matrix,
    }


def transfer_seconds(chip: Chip, traffic: Traffic) -> float:
    """Seconds that the bytes take through device memory, or to and from the host."""
    device = min(traffic.hbm, LARGEST) / (chip.hbm_bandwidth * HBM_EFFICIENCY)
    host = min(traffic.host, LARGEST) / chip.host_bandwidth if chip.host_bandwidth else 0.0
    return max(device, host)


def wire_seconds(chip: Chip, collective: Collective) -> float:
    """Seconds that a collective takes on the links, nothing else using them.

    Groups of more than two go round a ring of neighbours in both directions at once, pairs and
    permutes over one link. Where the group's size is unknown, all of the data are sent.
    """
    if not chip.ici_link_bandwidth:
        return 0.0
    size = collective.group_size
    sent = collective.wire_bytes
    if sent is None:
        sent = max(collective.operand_padded_bytes, collective.result_padded_bytes)
    if not sent:
        return 0.0
    ring = collective.kind != "collective-permute" and (size is None or size > 2)
    if ring:
        return ring_seconds(chip, sent, size)
    return min(sent, LARGEST) / chip.ici_link_bandwidth + HOP_SECONDS


def ring_seconds(chip: Chip, sent: int, size: int | None) -> float:
    """Seconds in which each device of a group sends bytes round a ring; 0 without links."""
    if not chip.ici_link_bandwidth:
        return 0.0
    links = min(2, chip.ici_links or 1) if size is None or size > 2 else 1
    hops = max(1, (size or 2) // 2) if chip.platform == "tpu" else 1
    return min(sent, LARGEST) / (chip.ici_link_bandwidth * links) + hops * HOP_SECONDS


def matrix_unit_use(size: Matmul, unit: int) -> float:
    """The share, above 0 to 1, of what the matrix unit computes that a product needs.

    Tiles of one operand are held in the array while rows of the other stream past; before the
    next tile is in place, half as many rows as the array has could have passed. The compiler
    holds whichever operand is cheaper to hold.

    Args:
      size: the product, no dimension of it 0.
      unit: rows and columns of the array.
    """
    padded = min(
        max(stream, unit // 2) * _up(held, unit)
        for stream, held in ((size.m, size.n), (size.n, size.m))
    )
    return size.m * size.n * size.k / (padded * _up(size.k, unit))


def _matmul_seconds(chip: Chip, size: Matmul) -> float:
    """Seconds of the matrix unit, whose rows and columns a small matrix leaves idle."""
    flops = float(min(size.flops, LARGEST))
    if chip.mxu_size:
        flops /= matrix_unit_use(size, chip.mxu_size)
    return results_seconds(chip, size) + flops * size.passes / chip.peak(size.element_type)


def results_seconds(chip: Chip, size: Matmul) -> float:
    """Seconds in which a product's results leave the matrix unit, however little it computes."""
    if chip.mxu_size is None or chip.mxu_size >= WIDE_MXU:
        return 0.0
    leaving = min(RESULT_BYTES * size.batch * size.m * size.n, LARGEST)
    return leaving / (chip.hbm_bandwidth * HBM_EFFICIENCY)


def _up(size: int, unit: int) -> int:
    return -(-size // unit) * unit


def _stream_seconds(chip: Chip, traffic: Traffic) -> float:
    if chip.platform != "tpu":
        return 0.0
    return STREAM_BYTES * min(traffic.widest, LARGEST) / (chip.hbm_bandwidth * HBM_EFFICIENCY)


def vector_rate(chip: Chip) -> float | None:
    """Elements a second that the vector unit can work on; `None` where its slots are not known."""
    if not (chip.valu_slots and chip.clock_hz):
        return None
    return chip.valu_slots * SUBLANES * LANES * chip.cores * chip.clock_hz


def _vector_seconds(chip: Chip, work: Work) -> float:
    rate = vector_rate(chip)
    return min(work.vector_elements, LARGEST) / rate if rate else 0.0

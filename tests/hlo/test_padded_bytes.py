"""Padded sizes equal those of the TPU compiler's own buffer assignment, on every generation."""

import pytest

import aot_oracle
from aot_programs import QUICK_SIZES
from buffer_assignment import array_values

pytestmark = pytest.mark.skipif(
    not aot_oracle.AVAILABLE, reason="compiling for a TPU needs jax and libtpu"
)


@pytest.mark.parametrize("generation", aot_oracle.TOPOLOGIES)
def test_every_buffer_has_the_size_that_xla_gives_it(generation: str) -> None:
    programs = aot_oracle.compile_for(generation, QUICK_SIZES)
    values = [v for p in programs for v in array_values(p.files["buffer-assignment.txt"])]
    assert len(programs) >= 3
    assert len(values) > 300
    assert [(v.text, v.expected_bytes, v.size) for v in values if v.expected_bytes != v.size] == []

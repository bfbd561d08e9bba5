"""What docs/triton2pallas.md lists is what there is."""

import re
from pathlib import Path

import pytest

pytest.importorskip("triton.language")
pytest.importorskip("jax")

import numpy as np

from translators.access.classify import AccessClass
from translators.triton.call_text import parse_call
from translators.verify import backward, gradients, relaunch, rungs, tpu_rungs

TEXT = (Path(__file__).parents[1] / "docs" / "triton2pallas.md").read_text(encoding="utf-8")


def first_column(heading):
    """The first column of the table under a heading of columns."""
    table = TEXT.partition(f"| {heading} |")[2].partition("\n\n")[0]
    return [line.split(" | ")[0].removeprefix("| ") for line in table.splitlines()[2:]]


def test_every_class_of_access_is_described():
    assert first_column("class") == [each.label for each in AccessClass]


def test_every_rung_is_described_in_its_order():
    assert first_column("rung") == [
        *(rungs.PROOF, rungs.PALLAS_PROOF, tpu_rungs.SIMULATOR, tpu_rungs.COMPILER),
        *(rungs.INTERPRETER, rungs.ORDER, rungs.PADDING, rungs.SPECIALS),
        *(rungs.SCALARS, relaunch.SIZES, relaunch.CONFIGURATIONS),
        *(gradients.GRADIENTS, backward.BACKWARD),
    ]


def test_what_is_said_of_values_in_calls_is_so():
    written = [value for row in first_column("written") for value in re.findall("`(.*?)`", row)]
    assert len(written) == 14
    call = parse_call(f"f({', '.join(written)})", np.random.default_rng(0))
    one, other, *rest, own = call.positional
    assert [tuple(each.shape) for each in (one, other)] == [(4, 8), (4, 8)]
    assert tuple(other.stride()) == (1, 4)
    assert rest[:7] == [12, 1e-5, float("inf"), True, None, "relu", [768]]
    assert rest[7] == (2, 3)
    assert [str(each.dtype) for each in rest[8]] == ["torch.float16", "torch.float16"]
    assert rest[9] == rest[10]
    assert str(own) == "fp16"

"""The smallest kernels of Triton's rules, in Pallas: right, or refused at their line.

By default some of them. All of them:

    CORNER_KERNELS=all pytest tests/pallas/test_corner_kernels.py
"""

import os

import pytest

pytest.importorskip("triton.language")
pytest.importorskip("jaxlib.mlir.ir")

from launch_case import evaluated, launched
from pallas_case import assert_same
from test_corner_cases import DONE

from hlo_tools.errors import InputError
from translators.translation import translate

_EVERY = 1 if os.environ.get("CORNER_KERNELS") == "all" else 19


@pytest.mark.parametrize("case", DONE[::_EVERY], ids=str)
def test_the_kernel_in_pallas_leaves_what_the_evaluator_leaves(case):
    try:
        translation = translate(*launched(case), "pallas")
    except InputError as refusal:
        assert str(refusal).startswith(f"{case.file}:"), refusal
        return
    assert_same(case, translation, evaluated(case), case.tolerance, case.absolute)

import json

import numpy as np
import pytest

pytest.importorskip("triton.language")

from subjects import COMMON, added, subject, vector_add

from translators.graph.location import SourceLocation
from translators.triton.launches import KernelSource
from translators.verify.ladder import climb
from translators.verify.report import Report, Rung, Status, render

SOURCE = KernelSource(function="add", file="add.py", line=3)
LINE = SourceLocation(file="add.py", line=9, column=5, text="tl.store(out + i, x)")
PASSED = Rung(
    name="proof",
    status=Status.PASSED,
    reason="3 inputs: within 4 ulps",
    ulps=1.0,
    array="out",
    index=(2, 7),
)
FAILED = Rung(
    name="a longer name",
    status=Status.FAILED,
    reason="`out`: 1 of 9 elements differ",
    ulps=np.inf,
    array="out",
    index=(4,),
    expected="1",
    found="nan",
    case="normal",
    lines=(LINE,) * 5,
)
SKIPPED = Rung(name="other", status=Status.SKIPPED, reason="nothing to do")


def report(*rungs):
    return Report(kernel=SOURCE, grid=(4, 1, 1), inputs=("normal",), proof="proof", rungs=rungs)


@pytest.mark.parametrize(
    ("rungs", "passed"),
    [
        ((PASSED, SKIPPED), True),
        ((PASSED, FAILED), False),
        ((SKIPPED,), False),
        ((), False),
    ],
)
def test_a_proof_is_needed_and_no_failure_allowed(rungs, passed):
    assert report(*rungs).passed is passed
    assert report(*rungs).to_json()["passed"] is passed


def test_the_text_says_what_was_compared_and_where_it_went_wrong():
    assert render(report(PASSED, FAILED, SKIPPED)) == (
        "add.py:3: `add`, grid 4 x 1 x 1\n"
        "  inputs: normal\n"
        "  passed   proof          3 inputs: within 4 ulps; worst 1 ulp at `out[2, 7]`\n"
        "  FAILED   a longer name  `out`: 1 of 9 elements differ\n"
        "           at `out[4]`: expected 1, found nan\n"
        "           on the input: normal\n"
        "           add.py:9:5: tl.store(out + i, x)\n"
        "           add.py:9:5: tl.store(out + i, x)\n"
        "           add.py:9:5: tl.store(out + i, x)\n"
        "           and 2 more lines\n"
        "  skipped  other          nothing to do\n"
        "  NOT proved equal\n"
    )


def test_json_holds_what_the_text_says():
    written = report(PASSED, FAILED).with_rungs(SKIPPED).to_json()
    assert json.loads(json.dumps(written, allow_nan=False)) == written
    proof, failed, skipped = written["rungs"]
    assert (proof["ulps"], proof["index"]) == (1.0, [2, 7])
    assert (failed["ulps"], failed["input"], failed["expected"]) == ("inf", "normal", "1")
    assert failed["lines"][0] == {"file": "add.py", "line": 9, "text": "tl.store(out + i, x)"}
    assert (skipped["array"], skipped["index"], skipped["ulps"]) == (None, None, None)


def test_the_first_failure_is_the_worst_then_the_greatest_difference():
    assert report(PASSED, FAILED).worst is FAILED
    assert report(PASSED, SKIPPED).worst is PASSED
    assert report(SKIPPED).worst is None


def test_a_real_report_can_be_written():
    found = climb(subject(vector_add(), added, results=["out_ptr"]))
    assert str(COMMON) in render(found)
    assert "  proved equal\n" in render(found)
    assert json.loads(json.dumps(found.to_json(), allow_nan=False))["passed"]

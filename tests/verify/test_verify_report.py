import json

import numpy as np
import pytest

pytest.importorskip("triton.language")

from subjects import COMMON, added, subject, vector_add

from translators.graph.location import SourceLocation
from translators.triton.launches import KernelSource
from translators.verify.ladder import climb
from translators.verify.report import Finding, Report, Rung, Status, render

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


SLOW = Finding(code="HLO201", rule="layout-copy", severity="error", message="`x` is copied")


def compiled(generation, **given):
    given = {"status": Status.PASSED, "reason": "`hlo-lint`: 1 finding", **given}
    return Rung(name="compiled", generation=generation, **given)


REFUSED = {"status": Status.FAILED, "reason": "no such vector"}


def report(*rungs):
    return Report(kernel=SOURCE, grid=(4, 1, 1), inputs=("normal",), proof="proof", rungs=rungs)


@pytest.mark.parametrize(
    ("rungs", "passed"),
    [
        ((PASSED, compiled("v5e"), compiled("v4", **REFUSED, decides=False)), True),
        ((PASSED, compiled("v5e", **REFUSED)), False),
        ((compiled("v5e"),), False),
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
        "  result   rung           chip  worst error           reason\n"
        "  passed   proof          -     1 ulp at `out[2, 7]`  3 inputs: within 4 ulps\n"
        "  FAILED   a longer name  -     -                     `out`: 1 of 9 elements differ\n"
        "           at `out[4]`: expected 1, found nan\n"
        "           on the input: normal\n"
        "           add.py:9:5: tl.store(out + i, x)\n"
        "           add.py:9:5: tl.store(out + i, x)\n"
        "           add.py:9:5: tl.store(out + i, x)\n"
        "           and 2 more lines\n"
        "  skipped  other          -     -                     nothing to do\n"
        "  NOT proved equal\n"
    )


def test_the_text_says_what_is_compiled_for_which_chip_and_what_is_slow_in_it():
    rungs = [
        PASSED,
        compiled("v5e", findings=(SLOW,)),
        compiled("v6e", **REFUSED),
        compiled("7x", findings=(SLOW,)),
        compiled("v4", **REFUSED, decides=False),
    ]
    lines = render(report(*rungs)).splitlines()
    assert lines[4:8] == [
        "  passed  compiled  v5e   -                     `hlo-lint`: 1 finding",
        "  FAILED  compiled  v6e   -                     no such vector",
        "  passed  compiled  7x    -                     `hlo-lint`: 1 finding",
        "  FAILED  compiled  v4    -                     no such vector",
    ]
    assert lines[8:] == [
        "  v5e, 7x: error HLO201 layout-copy: `x` is copied",
        "  proved equal, NOT compiled for v6e",
    ]
    written = report(*rungs).to_json()["rungs"]
    assert [each["generation"] for each in written] == [None, "v5e", "v6e", "7x", "v4"]
    assert [each["decides"] for each in written] == [True, True, True, True, False]
    assert written[1]["findings"][0]["rule"] == "layout-copy"


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

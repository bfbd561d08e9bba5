"""The plugin as projects use it: what passes, what fails, and in which words."""

import json
import re
import textwrap
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from aot_oracle import AVAILABLE
from hlo_tools.cli import main

pytest_plugins = ["pytester"]

ROOT = Path(__file__).resolve().parents[2]
HLO = ROOT / "fixtures" / "planted" / "hlo"
BAD = HLO / "missing_donation_cache_v5e_bad.hlo.txt"
GOOD = HLO / "missing_donation_cache_v5e_good.hlo.txt"

# Installed, the plugin is found by its entry point.
INSTALLED = any(
    point.value == "hlo_tools.pytest_plugin" for point in entry_points(group="pytest11")
)
OPTIONS = ("-p", "no:cacheprovider", *(() if INSTALLED else ("-p", "hlo_tools.pytest_plugin")))


def run(pytester: pytest.Pytester, code: str, *options: str) -> pytest.RunResult:
    pytester.makepyfile(test_step=textwrap.dedent(code))
    return pytester.runpytest_inprocess(*OPTIONS, *options)


def failure(result: pytest.RunResult) -> str:
    """The lines of an error, as pytest marks them."""
    lines = [line[1:].rstrip() for line in result.outlines if re.match(r"E( |$)", line)]
    return textwrap.dedent("\n".join(lines))


def test_a_program_without_findings_passes(pytester: pytest.Pytester) -> None:
    code = f"""
        from hlo_tools import GiB

        def test_step(hlo_lint):
            program = hlo_lint({str(GOOD)!r}, chip="v5e")
            program.check(peak_hbm=1 * GiB).has_no("missing-donation", "HLO4")
            assert program.peak_hbm < 0.5 * GiB
            assert program.exposed_collective_share < 0.1
    """
    run(pytester, code).assert_outcomes(passed=1)


def test_a_finding_fails_with_its_place_and_its_fix(pytester: pytest.Pytester) -> None:
    code = f"""
        def test_step(hlo_lint):
            hlo_lint({str(BAD)!r}, chip="v5e").has_no("missing-donation")
    """
    result = run(pytester, code)
    result.assert_outcomes(failed=1)
    told = failure(result)
    assert told.startswith("AssertionError: `jit_decode_step` breaks one condition:\n")
    assert "missing_donation.py:18:13: error HLO203 missing-donation\n" in told
    assert "fix:  donate the argument" in told
    # Of the way to the failure only the test itself is shown.
    shown = [line for line in result.outlines if re.match(r"\S+\.py:\d+", line)]
    assert shown == ["test_step.py:2: AssertionError"]


def test_a_figure_says_what_it_is(pytester: pytest.Pytester) -> None:
    code = f"""
        from hlo_tools import MiB

        def test_step(hlo_lint):
            assert hlo_lint({str(BAD)!r}, chip="v5e").peak_hbm < 100 * MiB
    """
    told = failure(run(pytester, code))
    assert re.fullmatch(
        r"assert [\d.]+ MiB < 100 MiB\n\s+the peak of device memory of `jit_decode_step` on v5e is "
        r"[\d.]+ MiB, [\d.]+ MiB more than 100 MiB",
        told,
    ), told


def test_other_comparisons_are_left_alone(pytester: pytest.Pytester) -> None:
    result = run(pytester, "def test_numbers(hlo_lint):\n    assert 3 < 2\n")
    assert failure(result) == "assert 3 < 2"


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (f"hlo_lint({str(BAD)!r}).has_no('mising-donation')", "did you mean `missing-donation`?"),
        (f"hlo_lint({str(BAD)!r}).check(fail_on='worse')", "unknown severity `worse`"),
        (f"hlo_lint({str(BAD)!r}, 3)", "arguments go with a function, and this is none"),
        ("hlo_lint('absent.txt')", "absent.txt: this cannot be read"),
        ("hlo_lint(len, [])", 'name the TPUs to compile for, as `topology="v5e:2x2"`'),
        ("hlo_lint(3, topology='v5e:2x2')", "a `int` is no program"),
    ],
)
def test_a_mistake_of_the_test_is_said_in_one_line(
    call: str, said: str, pytester: pytest.Pytester
) -> None:
    result = run(pytester, f"def test_step(hlo_lint):\n    {call}\n")
    result.assert_outcomes(failed=1)
    told = failure(result)
    assert said in told
    assert "\n" not in told
    assert "hlo_tools/" not in "\n".join(result.outlines)


SNAPSHOT = """
    import pathlib

    def test_step(hlo_lint):
        dump = pathlib.Path("dump").read_text()
        hlo_lint(dump, chip="v5e").matches_snapshot()
"""


def test_a_snapshot_is_written_when_asked_for_and_compared_otherwise(
    pytester: pytest.Pytester,
) -> None:
    dump = pytester.path / "dump"
    dump.write_text(str(BAD))
    file = pytester.path / "hlo_snapshots" / "test_step" / "test_step.json"

    missing = failure(run(pytester, SNAPSHOT))
    assert "there is no snapshot hlo_snapshots/test_step/test_step.json yet" in missing
    assert "`pytest --hlo-lint-update` writes it" in missing
    assert not file.exists()

    run(pytester, SNAPSHOT, "--hlo-lint-update").assert_outcomes(passed=1)
    written = json.loads(file.read_text())
    assert [entry["rule"] for entry in written["findings"]] == ["missing-donation"]
    run(pytester, SNAPSHOT).assert_outcomes(passed=1)

    dump.write_text(str(GOOD))
    gone = failure(run(pytester, SNAPSHOT))
    assert "`jit_decode_step_donated` differs from hlo_snapshots/test_step/test_step.json" in gone
    assert "gone: HLO203 missing-donation in `jit_decode_step` (" in gone

    run(pytester, SNAPSHOT, "--hlo-lint-update").assert_outcomes(passed=1)
    assert json.loads(file.read_text())["findings"] == []
    dump.write_text(str(BAD))
    assert "new, " in failure(run(pytester, SNAPSHOT))


def test_a_snapshot_is_a_baseline(pytester: pytest.Pytester) -> None:
    """One format of known findings: the command takes the file that the test has written."""
    (pytester.path / "dump").write_text(str(BAD))
    run(pytester, SNAPSHOT, "--hlo-lint-update").assert_outcomes(passed=1)
    file = "hlo_snapshots/test_step/test_step.json"
    assert main(["--chip", "v5e", "--baseline", file, str(BAD)]) == 0


def test_snapshots_of_one_test_have_names(pytester: pytest.Pytester) -> None:
    code = f"""
        import pytest

        @pytest.mark.parametrize("size", ["a/b"])
        def test_step(hlo_lint, size):
            program = hlo_lint({str(BAD)!r}, chip="v5e")
            program.matches_snapshot("small").matches_snapshot("large")
            program.matches_snapshot("small")
    """
    told = failure(run(pytester, code, "--hlo-lint-update"))
    assert "a second snapshot of the same test needs a name of its own" in told
    folder = pytester.path / "hlo_snapshots" / "test_step"
    assert sorted(path.name for path in folder.iterdir()) == [
        "test_step-a-b-.large.json",
        "test_step-a-b-.small.json",
    ]


STEP = """
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P


@jax.jit
def step(x, *, w):
    return jnp.dot(x, w, precision="highest")


def arguments(devices):
    mesh = Mesh(np.array(devices).reshape(-1), ("data",))
    rows = NamedSharding(mesh, P("data"))
    return (
        jax.ShapeDtypeStruct((4096, 1024), jnp.float32, sharding=rows),
        jax.ShapeDtypeStruct((1024, 1024), jnp.float32, sharding=NamedSharding(mesh, P())),
    )


def hlo_lint_example(devices):
    x, w = arguments(devices)
    return {"x": x, "w": w}
"""

COMPILES = """
import step as program

TOPOLOGY = "v5e:2x2"


def test_function(hlo_lint):
    x, w = program.arguments(hlo_lint.devices(TOPOLOGY))
    found = hlo_lint(program.step, x, w=w, topology=TOPOLOGY)
    assert found.module.chip == "v5e"
    assert found.module.partitions == 4
    assert found.findings[0].source.line == 9
    found.check(allow=["high-precision-dot"])
    assert hlo_lint(program.step, x, w=w, topology=TOPOLOGY).module == found.module


def test_name(hlo_lint):
    program = hlo_lint("step.py:step", topology=TOPOLOGY).has_no("sync-collective")
    program.has_no("high-precision-dot")
"""


@pytest.mark.skipif(not AVAILABLE, reason="needs jax and libtpu")
def test_functions_are_compiled(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the test's own process, or by name in another one."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("JAX_PLATFORMS", "cpu")
    pytester.makepyfile(step=STEP, test_compiles=COMPILES)
    result = pytester.runpytest_subprocess(*OPTIONS)
    result.assert_outcomes(passed=1, failed=1)
    told = failure(result)
    assert "step.py:9:12: " in told
    assert "error HLO601 high-precision-dot" in told
    assert "FAILED test_compiles.py::test_name" in "\n".join(result.outlines)

"""`hlo_tools.lint`: what it takes, what it returns, and what a notebook shows of it."""

import re
import subprocess
import sys
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

import hlo_tools
from aot_oracle import AVAILABLE
from hlo_tools.api import compiled_chip
from hlo_tools.errors import InputError

ROOT = Path(__file__).resolve().parents[2]
HLO = ROOT / "fixtures" / "planted" / "hlo"
BAD = HLO / "missing_donation_cache_v5e_bad.hlo.txt"
GOOD = HLO / "missing_donation_cache_v5e_good.hlo.txt"


@pytest.fixture(autouse=True)
def at_the_root(monkeypatch: pytest.MonkeyPatch) -> None:
    """As the dumps name their sources, and with no configuration but that of the repository."""
    monkeypatch.chdir(ROOT)


@dataclass
class Device:
    device_kind: str


@dataclass
class Sharding:
    device_set: set[Any] = field(default_factory=set)


class Compiled:
    """What JAX's own looks like from outside."""

    def __init__(self, text: str | None, kind: str) -> None:
        sharding = Sharding()
        sharding.device_set = (Device(kind),)  # type: ignore[assignment]
        self.input_shardings = (({"params": [sharding]},), {})
        self.output_shardings = ()
        self._text = text

    def as_text(self) -> str | None:
        return self._text


@pytest.mark.parametrize(
    "program",
    [BAD, str(BAD), BAD.read_text(), Compiled(BAD.read_text(), "TPU v5 lite")],
    ids=["path", "name", "text", "compiled"],
)
def test_a_program_is_linted_however_it_is_given(program: Any) -> None:
    result = hlo_tools.lint(program, chip="v5e")
    assert [f.rule for f in result.findings if f.severity.label == "error"] == ["missing-donation"]
    assert result.module.name == "jit_decode_step"


def test_the_chip_of_a_compiled_program_is_that_of_its_devices() -> None:
    result = hlo_tools.lint(Compiled(BAD.read_text(), "TPU v6 lite"))
    assert (result.module.chip, result.module.chip_assumed) == ("v6e", False)


@pytest.mark.parametrize("kind", ["cpu", "something new"])
def test_devices_that_nobody_knows_name_no_chip(kind: str) -> None:
    assert compiled_chip(Compiled("", kind)) is None


def test_figures_are_those_of_the_module() -> None:
    """And show themselves with a unit."""
    result = hlo_tools.lint(BAD, chip="v5e")
    assert result.peak_hbm == result.module.peak_hbm_bytes
    assert result.step_seconds == result.module.step_seconds
    assert result.exposed_collective_share == 0
    assert result.padded_share == result.figures.padded_share
    assert result.f32_dot_share == result.figures.f32_dot_share
    assert re.fullmatch(r"[\d.]+ MiB", repr(result.peak_hbm))
    assert re.fullmatch(r"2\.\d+ ms", repr(result.step_seconds))


@pytest.mark.parametrize("name", ["sync_collective_barrier_v5e", "sync_collective_ring_v5p"])
def test_exposed_collectives_are_fewer_where_they_are_hidden(name: str) -> None:
    """The share lies between none and all, and is larger where a collective blocks."""
    chip = name[-3:]
    bad = hlo_tools.lint(HLO / f"{name}_bad.hlo.txt", chip=chip).exposed_collective_share
    good = hlo_tools.lint(HLO / f"{name}_good.hlo.txt", chip=chip).exposed_collective_share
    assert 0 <= good < bad <= 1


def test_it_prints_what_the_command_prints() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "hlo_tools", "--chip", "v5e", str(BAD.relative_to(ROOT))],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    result = hlo_tools.lint(BAD.relative_to(ROOT), chip="v5e")
    assert str(result) == done.stdout.rstrip("\n")
    assert '"schema_version": 1' in result.report("json")


def test_options_are_those_of_the_command() -> None:
    assert hlo_tools.lint(BAD, select=["HLO3"]).findings == ()
    assert all(
        f.rule != "missing-donation" for f in hlo_tools.lint(BAD, ignore=["HLO203"]).findings
    )


@pytest.mark.parametrize(
    ("program", "options", "said"),
    [
        ("absent.txt", {}, "absent.txt: this cannot be read"),
        ("HloModule m\nnothing", {}, "<text>"),
        ("some\nlines\n", {}, "<text>"),
        (3, {}, "a `int` cannot be linted"),
        (Compiled(None, "TPU v5 lite"), {}, "has no text"),
        (BAD, {"chip": "v9"}, "unknown chip `v9`"),
        (BAD, {"select": ["nonsense"]}, "unknown rule `nonsense`"),
        (BAD, {"source_root": "absent"}, "absent: source root is no directory"),
    ],
)
def test_what_cannot_be_linted_is_said(program: Any, options: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError) as caught:
        hlo_tools.lint(program, **options)
    assert said in str(caught.value)


def test_what_is_not_compiled_yet_is_refused() -> None:
    """`jax.stages.Lowered` has a text as well, which is not HLO that anything was done to."""

    class Lowered(Compiled):
        def compile(self) -> None: ...

    with pytest.raises(InputError, match="not compiled yet: lint what its method `compile"):
        hlo_tools.lint(Lowered("module @jit_f", "TPU v5 lite"))


def test_several_modules_have_no_figures_of_one(tmp_path: Path) -> None:
    for dump in (BAD, GOOD):
        (tmp_path / dump.name).write_text(dump.read_text())
    result = hlo_tools.lint(tmp_path)
    assert len(result.outcome.modules) == 2
    with pytest.raises(InputError, match="there are 2 modules"):
        _ = result.peak_hbm


class Tags(HTMLParser):
    """Every tag of a page; fails on one that is not closed."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.seen: set[str] = set()
        self.open: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attributes: Any) -> None:
        self.seen.add(tag)
        if tag != "br":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_a_notebook_shows_a_table() -> None:
    page = hlo_tools.lint(BAD.relative_to(ROOT), chip="v5e")._repr_html_()
    tags = Tags(page)
    assert tags.open == []
    assert "table" in tags.seen
    assert "missing_donation.py:18:13" in page
    assert "1.61 ms of 2.53 ms per step" in page


def test_a_notebook_shows_hostile_names_as_text() -> None:
    """Whatever a dump calls its argument is no part of the page."""
    hostile = "<script>alert(1)</script><img src=x onerror=alert(1)>\\\"'"
    text = BAD.read_text().replace('op_name="cache"', f'op_name="{hostile}"')
    text = text.replace("jit_decode_step", "jit_<b>step</b>")
    page = hlo_tools.lint(text, chip="v5e")._repr_html_()
    assert "alert(1)" in page
    ours = {"div", "p", "b", "table", "thead", "tbody", "tr", "th", "td", "code", "br"}
    assert Tags(page).seen <= ours
    assert "onerror=alert(1)&gt;" in page


def test_conditions_hold_or_say_why() -> None:
    result = hlo_tools.lint(BAD.relative_to(ROOT), chip="v5e")
    assert result.has_no("padding-waste", "HLO4") is result
    assert result.check(allow=["HLO203"], peak_hbm=1 * hlo_tools.GiB) is result
    assert result.check(fail_on="never") is result
    with pytest.raises(AssertionError) as caught:
        result.check(peak_hbm=100 * hlo_tools.MiB, step_seconds=1e-3)
    told = str(caught.value)
    assert told.startswith("`jit_decode_step` breaks 3 conditions:\n")
    assert "fixtures/planted/programs/missing_donation.py:18:13: error HLO203 missing-don" in told
    assert "> cache = jax.lax.dynamic_update_slice" in told
    assert re.search(
        r"\n  the peak of device memory of `jit_decode_step` on v5e is [\d.]+ MiB, [\d.]+ MiB more "
        r"than 100 MiB\n  the modelled step of `jit_decode_step` on v5e is [\d.]+ ms, [\d.]+ ms "
        r"more than 1 ms$",
        told,
    )


def test_importing_the_package_imports_none_of_it() -> None:
    program = "import sys, hlo_tools; print(*(m for m in sys.modules if m.startswith('hlo_tools')))"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout == "hlo_tools\n"


def test_what_the_package_hands_on_is_there_and_documented() -> None:
    for name in hlo_tools.__all__:
        assert getattr(hlo_tools, name) is not None
    assert hlo_tools.lint.__doc__
    assert hlo_tools.LintResult.__doc__
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = hlo_tools.nonsense  # type: ignore[attr-defined]


@pytest.mark.skipif(not AVAILABLE, reason="needs jax")
def test_what_jax_compiles_for_this_machine_is_linted() -> None:
    """JAX's own `Compiled` and `Lowered`, in a process that may load JAX."""
    program = (
        "import jax, hlo_tools\n"
        "lowered = jax.jit(lambda x: jax.numpy.sin(x @ x)).lower(jax.numpy.ones((64, 64)))\n"
        "print(hlo_tools.lint(lowered.compile()).module.backend)\n"
        "try:\n    hlo_tools.lint(lowered)\n"
        "except hlo_tools.errors.InputError as error:\n    print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True,
        env={"JAX_PLATFORMS": "cpu", "PATH": ""},
    )  # fmt: skip
    backend, refusal = done.stdout.splitlines()
    assert backend == "cpu"
    assert refusal.startswith("this is not compiled yet")

"""Damaged and hostile dumps: findings or a clear error, from every rule, and nothing else."""

import re
from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from linting import ROOT, lint, read_dump

from hlo_tools.errors import InputError

HLO = ROOT / "fixtures" / "planted" / "hlo"
SMALL = [
    "layout_copy_kernel_v6e_bad",
    "loop_carried_copy_rotate_v5p_bad",
    "missing_donation_cache_v5e_bad",
    "sync_collective_barrier_v5e_good",
    "loop_invariant_collective_tied_v5e_bad",
    "host_transfer_callback_v6e_bad",
]
TEXTS = {name: read_dump(HLO / f"{name}.hlo.txt") for name in SMALL}
_NUMBER = re.compile(r"(?<=[\[{,=(])\d+(?=[\]},)])")


def lints_or_is_refused(text: str) -> None:
    """Every rule runs without failing, or the text is refused as input that cannot be used."""
    try:
        result = lint(text, chip="v5e")
    except InputError:
        return
    assert result.problems == ()
    for finding in result.findings:
        assert finding.cost.share is None or 0 <= finding.cost.share <= 1


@st.composite
def damaged(draw: st.DrawFn) -> str:
    """A real dump with some of it cut, repeated, swapped, renumbered or overwritten."""
    text = TEXTS[draw(st.sampled_from(SMALL))]
    for _ in range(draw(st.integers(1, 4))):
        kind = draw(st.integers(0, 5))
        at = draw(st.integers(0, max(0, len(text) - 1)))
        size = draw(st.integers(1, 400))
        if kind == 0:
            text = text[:at] + text[at + size :]
        elif kind == 1:
            text = text[: at + size] + text[at:]
        elif kind == 2:
            text = text[:at] + draw(st.text(max_size=12)) + text[at + 1 :]
        elif kind == 3:
            lines = text.split("\n")
            one, two = (draw(st.integers(0, len(lines) - 1)) for _ in range(2))
            lines[one], lines[two] = lines[two], lines[one]
            text = "\n".join(lines)
        elif kind == 4:
            value = draw(st.sampled_from(["0", "-1", "1", "7", "4294967296", "9" * 30]))
            text = text[:at] + _NUMBER.sub(value, text[at:], count=draw(st.integers(1, 20)))
        else:
            text = text[:at]
    return text


@settings(max_examples=120, suppress_health_check=[HealthCheck.too_slow])
@given(damaged())
def test_a_damaged_dump_never_breaks_a_rule(text: str) -> None:
    """What a dump says may be nonsense; what the linter does with it may not."""
    lints_or_is_refused(text)


@pytest.mark.parametrize("name", SMALL[:2])
def test_a_dump_may_end_at_any_place(name: str) -> None:
    """A dump that was cut off is linted as far as it goes."""
    text = TEXTS[name]
    for end in range(0, len(text), 101):
        lints_or_is_refused(text[:end])


def cyclic_calls() -> str:
    """Computations that call each other for ever."""
    return (
        "HloModule m, is_scheduled=true\n\n"
        "%a (p: f32[8]) -> f32[8] {\n  %p = f32[8]{0} parameter(0)\n"
        "  ROOT %c = f32[8]{0} call(%p), to_apply=%b\n}\n\n"
        "%b (q: f32[8]) -> f32[8] {\n  %q = f32[8]{0} parameter(0)\n"
        "  ROOT %d = f32[8]{0} fusion(%q), kind=kLoop, calls=%a\n}\n\n"
        "ENTRY %main (r: f32[8]) -> f32[8] {\n  %r = f32[8]{0} parameter(0)\n"
        "  ROOT %e = f32[8]{0} call(%r), to_apply=%a\n}\n"
    )


def self_reference() -> str:
    """Values that are computed from themselves."""
    return (
        "HloModule m, is_scheduled=true\n\nENTRY %main (r: f32[1024,1024]) -> f32[1024,1024] {\n"
        "  %x = f32[1024,1024]{1,0} copy(%y)\n  %y = f32[1024,1024]{0,1} copy(%x)\n"
        "  %g = f32[1024,1024]{1,0} get-tuple-element(%g), index=0\n"
        "  %s = f32[1024,1024]{1,0} copy-done(%t)\n  %t = f32[1024,1024]{1,0} copy-start(%s)\n"
        "  %b = f32[1024,1024]{1,0} bitcast(%b)\n"
        "  ROOT %z = f32[1024,1024]{1,0} add(%y, %b)\n}\n"
    )


def deep_nesting() -> str:
    """A tuple a thousand deep, and a chain of ten thousand instructions."""
    chain = "".join(f"  %v{n + 1} = f32[8]{{0}} negate(%v{n})\n" for n in range(10_000))
    nested = "(" * 1000 + "f32[]" + ")" * 1000
    return (
        "HloModule m, is_scheduled=true\n\nENTRY %main (v0: f32[8]) -> f32[8] {\n"
        f"  %v0 = f32[8]{{0}} parameter(0)\n  %deep = {nested} custom-call(), "
        'custom_call_target="x"\n' + chain + "  ROOT %r = f32[8]{0} copy(%v10000)\n}\n"
    )


@pytest.mark.parametrize("make", [cyclic_calls, self_reference, deep_nesting])
def test_impossible_programs_end(make: Callable[[], str]) -> None:
    """No walk over the graph goes in circles or too deep."""
    lints_or_is_refused(make())

"""Values are followed through fusions, tuples and names, and no further."""

from hlo_tools.analysis.dataflow import Dataflow, Read, Value
from hlo_tools.hlo.module import Instruction, Module
from hlo_tools.hlo.parser import parse_module

TEXT = """HloModule m, is_scheduled=true

%inner (q: f32[8]) -> f32[8] {
  %q = f32[8] parameter(0)
  ROOT %exp = f32[8] exponential(%q)
}

%outer (a: f32[8], b: f32[8]) -> (f32[8], f32[8]) {
  %a = f32[8] parameter(0)
  %b = f32[8] parameter(1)
  %nested = f32[8] fusion(%a), kind=kLoop, calls=%inner
  %sum = f32[8] add(%nested, %b)
  ROOT %both = (f32[8], f32[8]) tuple(%sum, %nested)
}

%body (s: (f32[8])) -> (f32[8]) {
  %s = (f32[8]) parameter(0)
  %carried = f32[8] get-tuple-element(%s), index=0
  %next = f32[8] negate(%carried)
  ROOT %state = (f32[8]) tuple(%next)
}

%cond (t: (f32[8])) -> pred[] {
  %t = (f32[8]) parameter(0)
  ROOT %yes = pred[] constant(true)
}

ENTRY %main (x: f32[8], y: f32[8]) -> f32[8] {
  %x = f32[8] parameter(0)
  %y = f32[8] parameter(1)
  %moved-start = (f32[8], f32[8], u32[]) copy-start(%x)
  %moved = f32[8] copy-done(%moved-start)
  %f = (f32[8], f32[8]) fusion(%moved, %y), kind=kLoop, calls=%outer
  %first = f32[8] get-tuple-element(%f), index=0
  %second = f32[8] get-tuple-element(%f), index=1
  %init = (f32[8]) tuple(%first)
  %loop = (f32[8]) while(%init), condition=%cond, body=%body
  %after = f32[8] get-tuple-element(%loop), index=0
  ROOT %last = f32[8] multiply(%after, %second)
}
"""


def find(module: Module, name: str) -> Instruction:
    """The instruction of that name, wherever it stands."""
    (found,) = (i for i in module.instructions() if i.name == name)
    return found


def test_what_a_fusion_returns_is_computed_inside_it() -> None:
    """Out of a tuple, into the fusion, and into the one inside that."""
    module = parse_module(TEXT, path="m")
    flow = Dataflow(module)
    assert flow.origin(find(module, "first")) == Value(find(module, "sum"))
    assert flow.origin(find(module, "second")) == Value(find(module, "exp"))


def test_what_a_fusion_reads_is_computed_outside_it() -> None:
    """Out of both fusions and through the copy, to the argument."""
    module = parse_module(TEXT, path="m")
    flow = Dataflow(module)
    assert list(flow.operands(find(module, "exp"))) == [Value(find(module, "x"))]
    assert list(flow.operands(find(module, "sum")))[1] == Value(find(module, "y"))


def test_reads_are_found_where_they_happen() -> None:
    """The same edges, the other way round."""
    module = parse_module(TEXT, path="m")
    flow = Dataflow(module)
    assert flow.reads(find(module, "x")) == [Read(find(module, "exp"), 0)]
    assert set(flow.reads(find(module, "exp"))) == {
        Read(find(module, "sum"), 0),
        Read(find(module, "last"), 1),
    }
    assert flow.reads(find(module, "last")) == [Read(find(module, "last"), None)]


def test_loops_are_opaque() -> None:
    """What a loop makes begins there, and what it takes ends there."""
    module = parse_module(TEXT, path="m")
    flow = Dataflow(module)
    assert flow.origin(find(module, "after")) == Value(find(module, "loop"), 0)
    assert flow.reads(find(module, "sum")) == [Read(find(module, "loop"), 0)]
    assert flow.origin(find(module, "carried")) == Value(find(module, "s"), 0)


def test_a_computation_that_two_fusions_share_is_not_followed_out_of() -> None:
    """Which of the two is meant is not known."""
    text = TEXT.replace("negate(%carried)", "fusion(%carried), kind=kLoop, calls=%inner")
    module = parse_module(text, path="m")
    flow = Dataflow(module)
    assert list(flow.operands(find(module, "exp"))) == [Value(find(module, "q"))]
    assert flow.reads(find(module, "exp")) == [Read(find(module, "exp"), None)]


def test_fusions_that_run_themselves_end() -> None:
    """Broken text has no origin; looking for it ends all the same."""
    module = parse_module(
        "HloModule m\n\n%f (p: f32[8]) -> f32[8] {\n  %p = f32[8] parameter(0)\n"
        "  ROOT %g = f32[8] fusion(%p), kind=kLoop, calls=%f\n}\n\n"
        "ENTRY %main (x: f32[8]) -> f32[8] {\n  %x = f32[8] parameter(0)\n"
        "  ROOT %r = f32[8] tanh(%x)\n}\n",
        path="m",
    )
    flow = Dataflow(module)
    assert flow.origin(find(module, "g")).instruction.name == "g"
    assert flow.reads(find(module, "p")) == []

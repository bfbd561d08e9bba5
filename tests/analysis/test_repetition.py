"""Chains are counted along operand edges, whatever else lies on them."""

from itertools import pairwise, product

from hypothesis import given
from hypothesis import strategies as st

from hlo_tools.analysis.repetition import longest_chain
from hlo_tools.hlo.parser import parse_module


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 6), st.integers(0, 6)), max_size=7))
def test_the_longest_chain_is_the_longest_of_all_paths(nodes: list[tuple[bool, int, int]]) -> None:
    """Against every path through a small graph, written out."""
    edges = {n + 1: {a % (n + 1), b % (n + 1)} for n, (_, a, b) in enumerate(nodes)}
    lines = ["  %v0 = f32[8] parameter(0)"]
    for number, sources in edges.items():
        one, *rest = sorted(sources)
        lines.append(f"  %v{number} = f32[8] add(%v{one}, %v{rest[0] if rest else one})")
    text = "HloModule m\n\nENTRY %main (v0: f32[8]) -> f32[8] {\n" + "\n".join(lines) + "\n}\n"
    module = parse_module(text, path="m")
    entry = module.entry
    assert entry is not None
    counted = {n + 1 for n, (member, _, _) in enumerate(nodes) if member}
    members = [i for i in entry.instructions if int(i.name[1:]) in counted]
    longest = 0
    for chosen in product([False, True], repeat=len(nodes)):
        path = [0] + [n + 1 for n, taken in enumerate(chosen) if taken]
        if all(a in edges[b] for a, b in pairwise(path)):
            longest = max(longest, len(counted & set(path)))
    # A path may also begin at a later instruction; every one has a way back to the parameter.
    assert longest_chain(entry, members) == longest

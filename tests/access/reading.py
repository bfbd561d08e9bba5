"""What tests read off an analysis."""

from translators.access.analysis import Access, Analysis
from translators.access.classify import AccessClass
from translators.access.delinearize import Position
from translators.access.expression import Interval
from translators.access.states import Integer
from translators.graph.graph import Value


def kinds(analysis: Analysis) -> list[AccessClass]:
    return [each.kind for each in analysis.accesses]


def indices(access: Access) -> list[str]:
    assert isinstance(access.position, Position), access.position
    return [str(each.index) for each in access.position.dimensions]


def limits(access: Access) -> list[tuple[str, bool]]:
    assert access.mask is not None
    return [(str(each), each.edge) for each in access.mask.bounds]


def interval(analysis: Analysis, value: Value) -> Interval:
    state = analysis.states[value]
    assert isinstance(state, Integer)
    return state.expression.interval

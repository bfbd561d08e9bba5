"""Calls of functions, some of which have no form on TPUs but for what their names say."""

from collections.abc import Mapping
from types import MappingProxyType

from translators.emit.calls import RULES as CALLS
from translators.emit.emission import Emission, Rule, Steps
from translators.emit.library import library_call
from translators.graph.graph import Op


def _call(e: Emission, op: Op) -> Steps | None:
    callee = op.text("callee")
    if callee in e.module.functions:
        return CALLS["tt.call"](e, op)
    if not library_call(e, op):
        raise e.refuse(op, f"of `{callee.split('__')[0]}` has no form that TPUs compute")
    return None


RULES: Mapping[str, Rule] = MappingProxyType({"tt.call": _call})

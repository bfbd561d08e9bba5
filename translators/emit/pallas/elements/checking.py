"""Checks of modules that were made anew."""

from translators.graph.graph import Module, walk
from translators.graph.verifier import verify


def verify_complete(module: Module) -> None:
    """Raises `GraphError` for the first broken rule of a module of which no function is left out.

    Functions that have no form on TPUs are left out, as nobody may ask for their bodies; a module
    that calls such a one breaks a rule for that alone.
    """
    called = {
        op.text("callee")
        for function in module.functions.values()
        for op in walk(function.body)
        if op.name == "tt.call"
    }
    if called <= module.functions.keys():
        verify(module)

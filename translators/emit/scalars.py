"""Which integers that a kernel is called with are no more than data.

A size or a stride decides what is touched, and how often: a function is written for one value of
it. A seed does not: it stays an argument.
"""

from translators.graph.graph import Module, Op, Value, walk
from translators.graph.types import I1, IntType

# Where a number decides more than values, by the op that takes it and the operands there.
_DECIDING = {
    "tt.addptr": (1,),
    "tt.load": (1,),
    "tt.store": (2,),
    "tt.atomic_rmw": (2,),
    "tt.atomic_load": (1,),
    "tt.atomic_store": (2,),
    "scf.if": (0,),
    "scf.for": (0, 1, 2),
    "scf.condition": (0,),
    "tt.int_to_ptr": (0,),
}


def data_arguments(module: Module) -> frozenset[int]:
    """The indices of integer arguments that decide nothing but values."""
    kernel = module.kernel
    ops = list(walk(kernel.body))
    return frozenset(
        index
        for index, argument in enumerate(kernel.arguments)
        if isinstance(argument.type, IntType)
        and argument.type != I1
        and not _decides(argument, ops)
    )


def _decides(argument: Value, ops: list[Op]) -> bool:
    """Whether what is computed from the argument decides what is touched or how often."""
    reached = {argument}
    changed = True
    while changed:
        changed = False
        for op in ops:
            taken = [index for index, each in enumerate(op.operands) if each in reached]
            if not taken:
                continue
            if op.name.startswith("tt.descriptor") or op.name == "tt.make_tensor_descriptor":
                return True
            if any(index in _DECIDING.get(op.name, ()) for index in taken):
                return True
            # A value carried around by a region may be any of those that it carries.
            found = {*op.results, *(each for region in op.regions for each in region.arguments)}
            if op.name in ("scf.yield", "scf.condition"):
                found = _carried(op, ops)
            if not found <= reached:
                reached |= found
                changed = True
    return False


def _carried(end: Op, ops: list[Op]) -> set[Value]:
    """What the op around a region gives, and enters its regions with."""
    for op in ops:
        if any(region.ops and region.terminator is end for region in op.regions):
            return {*op.results, *(each for region in op.regions for each in region.arguments)}
    return set()

"""Ops of the dialects that the graph does not hold, each with the reason.

An op of those dialects is in the catalogue, or read as something else, or refused; a test compares
all three with the lists that the dialects themselves give.
"""

from collections.abc import Mapping
from types import MappingProxyType

_BRANCH = "control flow is structured: what an early return skips goes into an `scf.if`"
_INDEX = "there is no `index` type here; Triton counts in `i32` and `i64`"
_PARALLEL = "a program has no threads of its own; Triton does not emit it"
_NOT_EMITTED = "Triton does not emit it"

READ_AS: Mapping[str, str] = MappingProxyType(
    {
        "cf.br": _BRANCH,
        "cf.cond_br": _BRANCH,
        "tt.dot_scaled": "elements spread out and scaled, and a product of what comes out",
        "tt.func": "a function of the module, not an op",
    }
)

REFUSED: Mapping[str, str] = MappingProxyType(
    {
        "arith.convertf": _NOT_EMITTED,
        "arith.flush_denormals": _NOT_EMITTED,
        "arith.index_cast": _INDEX,
        "arith.index_castui": _INDEX,
        "arith.maximumnumf": _NOT_EMITTED,
        "arith.minimumnumf": _NOT_EMITTED,
        "arith.scaling_extf": _NOT_EMITTED,
        "arith.scaling_truncf": _NOT_EMITTED,
        "cf.assert": "Triton asserts with `tt.assert`",
        "cf.switch": _NOT_EMITTED,
        "math.clampf": "Triton clamps with `tt.clampf`, which says what becomes of NaN",
        "scf.execute_region": _NOT_EMITTED,
        "scf.forall": _PARALLEL,
        "scf.forall.in_parallel": _PARALLEL,
        "scf.index_switch": _INDEX,
        "scf.parallel": _PARALLEL,
        "scf.reduce": _PARALLEL,
        "scf.reduce.return": _PARALLEL,
    }
)

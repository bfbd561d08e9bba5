"""The catalogue: every rule, under its id and its name, those of other distributions included."""

from passes import (
    all_reduce_then_slice,
    convert_pingpong,
    expensive_rng,
    full_sort,
    fusion_break,
    high_precision_dot,
    host_transfer,
    large_constant,
    layout_copy,
    loop_accumulated_all_reduce,
    loop_carried_copy,
    loop_invariant_collective,
    low_precision_accumulation,
    missing_donation,
    mxu_underuse,
    out_of_memory,
    padding_waste,
    parameter_transpose,
    recomputed_producer,
    replicated_compute,
    resharding,
    scatter_gather_loop,
    sync_collective,
    uncombined_collectives,
    unfused_elementwise,
    unoverlapped_matmul_gather,
    unrolled_layers,
    unstable_softmax,
    wide_collective,
    wide_type,
)
from passes.rule import Rule
from passes.third_party import third_party_rules

RULES: tuple[Rule, ...] = (
    fusion_break.check,
    unfused_elementwise.check,
    recomputed_producer.check,
    layout_copy.check,
    loop_carried_copy.check,
    missing_donation.check,
    parameter_transpose.check,
    convert_pingpong.check,
    padding_waste.check,
    mxu_underuse.check,
    sync_collective.check,
    all_reduce_then_slice.check,
    loop_invariant_collective.check,
    loop_accumulated_all_reduce.check,
    uncombined_collectives.check,
    wide_collective.check,
    resharding.check,
    replicated_compute.check,
    unoverlapped_matmul_gather.check,
    host_transfer.check,
    scatter_gather_loop.check,
    full_sort.check,
    large_constant.check,
    expensive_rng.check,
    unrolled_layers.check,
    high_precision_dot.check,
    low_precision_accumulation.check,
    unstable_softmax.check,
    wide_type.check,
    out_of_memory.check,
)
"""Those of this package, in the order of their ids."""

_ALL = (*RULES, *third_party_rules(RULES))
BY_ID = {rule.id: rule for rule in _ALL}
BY_NAME = {rule.name: rule for rule in _ALL}

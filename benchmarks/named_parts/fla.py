"""`chunk_gated_delta_rule` of flash-linear-attention, forward and backward, and its inverse."""

from functools import partial
from importlib import import_module

import torch

PACKAGE = "fla-core"
CHECKOUT = None
MODULE = "fla"


def prepare(checkouts):
    """It is installed."""


def load(checkouts):
    """Nothing launches as it is imported."""


def gated_delta_rule(checkouts, lengths, heads, width, dtype, **options):
    """Forward and backward; with several lengths, of sequences that are packed into one."""
    length = sum(lengths)
    batch = 1 if len(lengths) > 1 else 2
    shape = (batch, length, heads)
    q, k, v = ((torch.randn(*shape, width) * 0.5).to(dtype) for _ in range(3))
    k = torch.nn.functional.normalize(k.float(), dim=-1).to(dtype)
    g = torch.nn.functional.logsigmoid(torch.randn(shape))
    beta = torch.rand(shape).to(dtype)
    leaves = [each.requires_grad_() for each in (q, k, v, g, beta)]
    if options.get("use_gate_in_kernel"):
        options = {**options, "A_log": torch.randn(heads), "dt_bias": torch.randn(heads)}
    state = torch.randn(len(lengths) if batch == 1 else batch, heads, width, width)
    offsets = torch.tensor([0, *lengths]).cumsum(0) if len(lengths) > 1 else None
    out, last = import_module("fla.ops.gated_delta_rule").chunk_gated_delta_rule(
        *leaves,
        initial_state=state.requires_grad_(),
        output_final_state=True,
        cu_seqlens=offsets,
        **options,
    )
    torch.autograd.backward([out, last], [torch.randn_like(out), torch.randn_like(last)])


def inverse(checkouts):
    """The inverses of unit lower triangles of 64 x 64, one of them of an odd length."""
    module = import_module("fla.ops.utils.solve_tril")
    for lengths in ((150,), (70, 90)):
        length = sum(lengths)
        lower = torch.randn(1 if len(lengths) > 1 else 2, length, 3, 64) * 0.1
        rows = torch.arange(length)
        if len(lengths) > 1:
            rows = torch.cat([torch.arange(each) for each in lengths])
        lower *= torch.arange(64) < (rows % 64)[:, None, None]
        offsets = torch.tensor([0, *lengths]).cumsum(0) if len(lengths) > 1 else None
        module.solve_tril(lower, cu_seqlens=offsets)


CASES = {
    "gated delta rule": partial(
        gated_delta_rule, lengths=(150,), heads=3, width=64, dtype=torch.float32
    ),
    "gated delta rule, bf16, width 128": partial(
        gated_delta_rule, lengths=(130,), heads=2, width=128, dtype=torch.bfloat16
    ),
    "gated delta rule, packed": partial(
        gated_delta_rule, lengths=(70, 90), heads=2, width=64, dtype=torch.bfloat16
    ),
    "gated delta rule, l2 norm": partial(
        gated_delta_rule,
        lengths=(130,),
        heads=2,
        width=32,
        dtype=torch.float32,
        use_qk_l2norm_in_kernel=True,
    ),
    "gated delta rule, gate in the kernel": partial(
        gated_delta_rule,
        lengths=(130,),
        heads=2,
        width=32,
        dtype=torch.float32,
        use_gate_in_kernel=True,
    ),
    "inverse of 64 x 64": inverse,
}

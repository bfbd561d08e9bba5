"""Mamba-2's chunk scan and chunk state, with all that `mamba_chunk_scan_combined` launches."""

from functools import partial
from importlib import import_module

import torch

from .stand_ins import StandIns

PACKAGE = "mamba-ssm"
CHECKOUT = "mamba"
_REAL = {
    "mamba_ssm.utils.torch",
    "mamba_ssm.utils.determinism",
    *(
        f"mamba_ssm.ops.triton.{name}"
        for name in (
            *("ssd_bmm", "ssd_chunk_scan", "ssd_chunk_state", "ssd_combined", "ssd_state_passing"),
            *("layernorm_gated", "k_activations", "softplus"),
        )
    ),
}


def prepare(checkouts):
    """Finds the package in its checkout; of its modules only those of Mamba-2's kernels run."""
    StandIns(checkouts / CHECKOUT / "mamba_ssm", _REAL, {}).install()


def load(checkouts):
    """Nothing launches as it is imported."""


def chunk_scan(checkouts, length, chunk, heads, groups, dtype, full=False):
    """Forward and backward."""
    x = torch.randn(2, length, heads, 64).to(dtype)
    dt = torch.rand(2, length, heads)
    a = -torch.rand(heads)
    b, c = (torch.randn(2, length, groups, 32).to(dtype) for _ in range(2))
    leaves = [each.requires_grad_() for each in (x, dt, a, b, c)]
    options = {}
    if full:
        options = {
            "D": torch.randn(heads).requires_grad_(),
            "z": torch.randn_like(x).requires_grad_(),
            "dt_bias": torch.randn(heads).requires_grad_(),
            "dt_softplus": True,
            "initial_states": torch.randn(2, heads, 64, 32).requires_grad_(),
            "seq_idx": (torch.arange(length) // 100).to(torch.int32).expand(2, -1).contiguous(),
        }
    module = import_module("mamba_ssm.ops.triton.ssd_combined")
    out = module.mamba_chunk_scan_combined(*leaves, chunk, **options)
    out.backward(torch.randn_like(out))


def varlen_states(checkouts):
    """The states at the ends of sequences that are packed into one."""
    module = import_module("mamba_ssm.ops.triton.ssd_chunk_state")
    module.chunk_state_varlen(
        torch.randn(150, 1, 32),
        torch.randn(150, 4, 64),
        torch.rand(4, 3, 64),
        -torch.rand(4, 3, 64).cumsum(-1),
        torch.tensor([0, 37, 150]),
        torch.randn(3, 4, 64, 32),
    )


CASES = {
    "chunk scan": partial(
        chunk_scan, length=400, chunk=256, heads=4, groups=1, dtype=torch.float32
    ),
    "chunk scan, with all options": partial(
        chunk_scan, length=300, chunk=128, heads=4, groups=2, dtype=torch.bfloat16, full=True
    ),
    "chunk scan, short chunks": partial(
        chunk_scan, length=150, chunk=64, heads=4, groups=1, dtype=torch.bfloat16
    ),
    "chunk state, packed": varlen_states,
}

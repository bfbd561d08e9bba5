"""Calls of Mamba's operators that are written in Triton, forward and backward."""

NAMES = {
    "norm": "mamba_ssm.ops.triton.layer_norm",
    "gated": "mamba_ssm.ops.triton.layernorm_gated",
    "act": "mamba_ssm.ops.triton.k_activations",
    "step": "mamba_ssm.ops.triton.selective_state_update",
    "ssd": "mamba_ssm.ops.triton.ssd_combined",
    "scan": "mamba_ssm.ops.triton.ssd_chunk_scan",
    "state": "mamba_ssm.ops.triton.ssd_chunk_state",
    "siso": "mamba_ssm.ops.triton.mamba3.mamba3_siso_combined",
    "siso_step": "mamba_ssm.ops.triton.mamba3.mamba3_siso_step",
    "mimo": "mamba_ssm.ops.triton.mamba3.mamba3_mimo_utils",
}
_SSD = "g(f(1, 32, 2, 16)), g(u(1, 32, 2)), g(-u(2)), g(f(1, 32, 1, 16)), g(f(1, 32, 1, 16)), 16"
_SISO = (
    "g(bf(1, 64, 2, 32)), g(bf(1, 64, 2, 32)), g(bf(1, 64, 2, 32)), g(-u(1, 2, 64)),"
    " g(u(1, 2, 64)), g(bf(1, 2, 64)), g(bf(2, 32)), g(bf(2, 32)), g(f(1, 64, 2, 16))"
)

CALLS = (
    "backward(norm.layer_norm_fn(g(f(5, 64)), g(f(64)), g(f(64))))",
    "backward(norm.layer_norm_fn(g(f(5, 64)), g(f(64)), g(f(64)), residual=g(f(5, 64)),"
    " prenorm=True))",
    "backward(norm.rms_norm_fn(g(f(5, 64)), g(f(64)), None, residual=g(f(5, 64))))",
    "backward(gated.layernorm_fn(g(f(5, 64)), g(f(64)), g(f(64)), g(f(5, 64))))",
    "backward(gated.rmsnorm_fn(g(f(5, 64)), g(f(64)), None, g(f(5, 64)), group_size=32))",
    "backward(act.swiglu(g(f(5, 64))))",
    "step.selective_state_update(f(2, 32, 16), f(2, 32), u(2, 32), -u(32, 16), f(2, 16), f(2, 16),"
    " f(32), f(2, 32), f(32), True)",
    "step.selective_state_update(f(2, 4, 8, 16), f(2, 4, 8), u(2, 4, 8), -u(4, 8, 16), f(2, 1, 16),"
    " f(2, 1, 16), f(4, 8), f(2, 4, 8), f(4, 8), True)",
    f"backward(ssd.mamba_chunk_scan_combined({_SSD}))",
    f"backward(ssd.mamba_chunk_scan_combined({_SSD}, D=g(f(2)), z=g(f(1, 32, 2, 16)),"
    " dt_bias=g(f(2)), dt_softplus=True))",
    f"backward(ssd.mamba_chunk_scan_combined({_SSD}, initial_states=g(f(1, 2, 16, 16)),"
    " seq_idx=torch.arange(32, dtype=torch.int32).reshape(1, 32) // 20))",
    f"backward(ssd.mamba_chunk_scan({_SSD}))",
    "state.chunk_state_varlen(f(32, 1, 16), f(32, 2, 16), u(2, 2, 16), -u(2, 2, 16),"
    " torch.tensor([0, 12, 32]), f(2, 2, 16, 16))",
    f"backward(siso.mamba3_siso_combined({_SISO}))",
    f"backward(siso.mamba3_siso_combined({_SISO}, g(f(2)), g(bf(1, 64, 2, 32)), chunk_size=32))",
    "siso_step.mamba3_siso_step(bf(2, 2, 32), bf(2, 2, 32), bf(2, 2, 32), -u(2, 2), u(2, 2),"
    " bf(2, 2), bf(2, 32), bf(2, 32), f(2, 2, 16), None, None, (f(2, 2, 16), f(2, 2, 32, 32),"
    " f(2, 2, 32), f(2, 2, 32)))",
    "mimo.compute_dacs_segsum_triton(-u(1, 2, 32), 16)",
    "mimo.bwd_dadt_fused_triton(f(1, 2, 2, 16, 16), f(1, 2, 2, 16, 16), f(1, 2, 32), f(1, 2, 32),"
    " -u(1, 2, 32), -u(1, 2, 32), 16)",
    "mimo.bwd_dtrap_ddt_triton(f(1, 2, 32), u(1, 2, 32), f(1, 2, 32), f(1, 2, 32), 16)",
)

"""Calls of the operators and modules of flash-linear-attention, forward and backward.

The package's own tests launch most of its operators; these are the modules, whose tests are large,
and operators that the tests leave out.
"""

NAMES = {
    "ops": "fla.ops",
    "modules": "fla.modules",
    "act": "fla.modules.activations",
    "conv": "fla.modules.convolution",
    "norm": "fla.modules.layernorm",
    "gated": "fla.modules.fused_norm_gate",
    "l2norm": "fla.modules.l2norm",
    "l2warp": "fla.modules.l2warp",
    "rotary": "fla.modules.rotary",
    "shift": "fla.modules.token_shift",
    "losses": "fla.modules.fused_cross_entropy",
    "linear_losses": "fla.modules.fused_linear_cross_entropy",
    "kl": "fla.modules.fused_kl_div",
    "grpo": "fla.modules.grpo",
    "bitlinear": "fla.modules.fused_bitlinear",
    "addcmul": "fla.ops.rwkv7.fused_addcmul",
    "k_update": "fla.ops.rwkv7.fused_k_update",
    "mixing": "fla.ops.rwkv7.channel_mixing",
    "correction": "fla.ops.rwkv7.gate_output_correction",
    "utils": "fla.ops.utils",
    "oja": "fla.ops.gated_oja_rule",
    "gdn2": "fla.ops.gdn2",
    "hgrn": "fla.ops.hgrn",
    "deltaformer": "fla.ops.deltaformer",
    "decoding": "fla.ops.attn.decoding",
    "mesa": "fla.ops.mesa_net.decoding_one_step",
    "parallax": "fla.ops.parallax.decode",
    "gdn_gate": "fla.ops.gated_delta_rule.gate",
    "kda_gate": "fla.ops.kda.gate",
}
_QKV = "g(f(1, 64, 2, 32)), g(f(1, 64, 2, 32) * 0.1), g(f(1, 64, 2, 32))"
_BF16 = "g(bf(1, 64, 2, 64)), g(bf(1, 64, 2, 64) * 0.1), g(bf(1, 64, 2, 64))"
_GATE = "-u(1, 64, 2, 32)"
_SHORT = "g(f(1, 12, 2, 32)), g(f(1, 12, 2, 32) * 0.1), g(f(1, 12, 2, 32))"
_SHORT_GATE = "-u(1, 12, 2, 32)"
_SHORT_SCALAR_GATE = "-u(1, 12, 2)"
_SCALAR_GATE = "-u(1, 64, 2)"

CALLS = (
    "backward(correction.gate_output_correction(g(f(2, 9, 64)), g(f(2, 9, 2, 32)),"
    " g(f(2, 9, 2, 32)), g(f(2, 32)), g(f(2, 9, 2, 32)), g(f(2, 9, 64))))",
    f"backward(oja.chunk_gated_oja_rule({_QKV}, g({_GATE}), g(u(1, 64, 2))))",
    f"backward(gdn2.chunk_gdn2({_QKV}, g({_GATE}), g(u(1, 64, 2, 32)), g(u(1, 64, 2, 32))))",
    f"gdn2.fused_recurrent_gdn2({_SHORT}, {_SHORT_GATE}, u(1, 12, 2, 32), u(1, 12, 2, 32))",
    "backward(hgrn.chunk_hgrn(g(f(2, 24, 32)), g(-u(2, 24, 32)))[0])",
    f"backward(deltaformer.deltaformer_attn({_QKV}, g(u(1, 64, 2)), C=32))",
    "decoding.attn_decoding_one_step(f(1, 2, 4, 32), f(1, 40, 2, 32), f(1, 40, 2, 32),"
    " cu_seqlens=torch.tensor([0, 16, 40]))",
    "mesa.mesa_net_decoding_one_step(f(2, 2, 32), f(2, 2, 32), f(2, 2, 32), -u(2, 2), u(2, 32),"
    " u(2, 2), f(2, 2, 32, 32), f(2, 2, 32, 32), 5)",
    "parallax.parallax_decode(bf(1, 1, 4, 32), bf(1, 1, 4, 32), bf(1, 40, 2, 32),"
    " bf(1, 40, 2, 32))",
    "parallax.parallax_decode_one_step(bf(1, 1, 4, 32), bf(1, 1, 4, 32), bf(1, 40, 2, 32),"
    " bf(1, 40, 2, 32))",
    "backward(gdn_gate.fused_gdn_gate(g(f(1, 64, 2)), g(f(2)), g(f(2))))",
    "gdn_gate.gdn_gate_chunk_cumsum(f(1, 64, 2), f(2), 16)",
    "backward(kda_gate.fused_kda_gate(g(f(1, 64, 2, 32)), g(f(2)), g(f(64))))",
    "kda_gate.kda_gate_chunk_cumsum(f(1, 64, 2, 32), f(2), 16)",
    *(
        f"backward(ops.{name}({_QKV}))"
        for name in (
            *("chunk_linear_attn", "fused_chunk_linear_attn", "parallel_attn"),
            *("chunk_retention", "fused_chunk_retention", "parallel_retention"),
        )
    ),
    "backward(ops.fused_chunk_based(g(f(1, 32, 2, 16)), g(f(1, 32, 2, 16)), g(f(1, 32, 2, 32))))",
    "backward(ops.parallel_based(g(f(1, 32, 2, 16)), g(f(1, 32, 2, 16)), g(f(1, 32, 2, 32))))",
    f"backward(ops.fused_recurrent_linear_attn({_SHORT}))",
    f"backward(ops.fused_recurrent_retention({_SHORT}))",
    f"backward(ops.fused_recurrent_gla({_SHORT}, gk={_SHORT_GATE}))",
    f"backward(ops.chunk_gla({_QKV}, {_GATE}))",
    f"backward(ops.chunk_abc({_QKV}, g(f(1, 64, 2, 16))))",
    f"backward(ops.chunk_gsa({_QKV}, g(f(1, 64, 2, 16)), -u(1, 64, 2, 16)))",
    f"backward(ops.fused_recurrent_gsa({_SHORT}, g(f(1, 12, 2, 16)), -u(1, 12, 2, 16)))",
    f"backward(ops.chunk_simple_gla({_QKV}, g({_SCALAR_GATE})))",
    f"backward(ops.parallel_simple_gla({_QKV}, g({_SCALAR_GATE})))",
    f"backward(ops.fused_chunk_simple_gla({_QKV}, g({_SCALAR_GATE})))",
    f"backward(ops.fused_recurrent_simple_gla({_SHORT}, g({_SHORT_SCALAR_GATE})))",
    f"backward(ops.chunk_delta_rule({_BF16}, g(u(1, 64, 2).bfloat16())))",
    f"backward(ops.fused_recurrent_delta_rule({_SHORT}, g(u(1, 12, 2))))",
    f"backward(ops.chunk_gated_delta_rule({_QKV}, g({_SCALAR_GATE}), g(u(1, 64, 2))))",
    f"ops.fused_recurrent_gated_delta_rule({_SHORT}, {_SHORT_SCALAR_GATE}, beta=u(1, 12, 2))",
    f"backward(ops.chunk_kda({_QKV}, g({_GATE}), g(u(1, 64, 2))))",
    f"ops.fused_recurrent_kda({_SHORT}, {_SHORT_GATE}, u(1, 12, 2))",
    f"backward(ops.chunk_comba({_QKV}, g(f(1, 64, 2, 32) * 0.1), g({_SCALAR_GATE}),"
    " g(u(1, 64, 2))))",
    f"backward(ops.chunk_rwkv6({_QKV}, g({_GATE}), g(f(2, 32))))",
    f"backward(ops.fused_recurrent_rwkv6({_SHORT}, g({_SHORT_GATE}), g(f(2, 32))))",
    f"backward(ops.chunk_dplr_delta_rule({_QKV}, g(f(1, 64, 2, 32) * 0.1),"
    f" g(f(1, 64, 2, 32) * 0.1), g({_GATE})))",
    f"ops.fused_recurrent_dplr_delta_rule({_SHORT}, f(1, 12, 2, 32) * 0.1, f(1, 12, 2, 32) * 0.1,"
    f" {_GATE})",
    f"ops.chunk_iplr_delta_rule({_QKV}, f(1, 64, 2, 32) * 0.1, f(1, 64, 2, 32) * 0.1)",
    f"backward(ops.fused_recurrent_iplr_delta_rule({_SHORT}, g(f(1, 12, 2, 32) * 0.1),"
    " g(f(1, 12, 2, 32) * 0.1)))",
    f"ops.fused_recurrent_rwkv7(f(1, 12, 2, 32), {_SHORT_GATE}, f(1, 12, 2, 32), f(1, 12, 2, 32),"
    " f(1, 12, 2, 32) * 0.1, f(1, 12, 2, 32) * 0.1)",
    f"backward(ops.chunk_rwkv7(g(f(1, 64, 2, 32)), g({_GATE}), g(f(1, 64, 2, 32)),"
    " g(f(1, 64, 2, 32)), g(f(1, 64, 2, 32) * 0.1), g(f(1, 64, 2, 32) * 0.1)))",
    "backward(ops.fused_recurrent_hgrn(g(f(2, 12, 32)), g(-u(2, 12, 32))))",
    f"backward(ops.chunk_mesa_net({_QKV}, g({_SCALAR_GATE}), g(u(1, 64, 2)), g(u(2, 32) + 0.5)))",
    f"backward(ops.chunk_precond_gated_delta_rule({_QKV}, g({_SCALAR_GATE}), g({_SCALAR_GATE}),"
    " g(u(1, 64, 2)), g(u(1, 64, 2))))",
    f"backward(ops.chunk_precond_kda({_QKV}, g({_GATE}), g({_SCALAR_GATE}), g(u(1, 64, 2)),"
    " g(u(1, 64, 2))))",
    f"backward(ops.chunk_momentum_delta_rule({_BF16}, g({_SCALAR_GATE}), g({_SCALAR_GATE}),"
    " beta=g(u(1, 64, 2).bfloat16())))",
    f"backward(ops.chunk_lightning_attn({_QKV}, 0, 4))",
    f"backward(ops.fused_recurrent_lightning_attn({_SHORT}, 0, 4))",
    f"backward(ops.chunk_log_linear_attn({_BF16}, g({_SCALAR_GATE}),"
    " g(u(1, 64, 2, 7).bfloat16())))",
    f"backward(ops.parallel_attn({_QKV}, g({_SCALAR_GATE})))",
    f"backward(ops.parallel_forgetting_attn({_QKV}, g({_SCALAR_GATE})))",
    "backward(ops.parallel_nsa(g(f(1, 64, 16, 32)), g(f(1, 64, 1, 32)), g(f(1, 64, 1, 32)),"
    " g(u(1, 64, 16)), g(u(1, 64, 16)), g(u(1, 64, 16)), block_counts=2, block_size=16))",
    f"backward(ops.parallel_parallax({_BF16}, g(bf(1, 64, 2, 64))))",
    f"backward(ops.parallel_path_attn({_QKV}, g(f(1, 64, 2, 32) * 0.1), g(u(1, 64, 2)),"
    f" g({_SCALAR_GATE})))",
    f"backward(ops.parallel_stickbreaking_attn({_QKV}))",
    f"backward(ops.parallel_wall_attn({_QKV}, g({_GATE})))",
    "backward(ops.fused_attnres(g(f(32)), [g(f(2, 8, 32)), g(f(2, 8, 32)), g(f(2, 8, 32))],"
    " g(f(32))))",
    "backward(conv.causal_conv1d(g(f(2, 16, 32)), g(f(32, 4)), g(f(32)), g(f(2, 16, 32)),"
    " activation='silu'))",
    "backward(conv.causal_conv1d(g(f(2, 16, 32)), g(f(32, 4)), initial_state=g(f(2, 32, 4)),"
    " output_final_state=True))",
    "backward(conv.causal_conv1d(g(f(1, 32, 32)), g(f(32, 4)), cu_seqlens=torch.tensor([0, 9,"
    " 32])))",
    "conv.causal_conv1d_update(f(2, 1, 32), f(2, 32, 4), weight=f(32, 4), bias=f(32),"
    " activation='silu')",
    *(
        f"backward(norm.{name}(g(f(5, 64)), g(f(64)), g(f(64))))"
        for name in ("layer_norm", "rms_norm")
    ),
    "backward(norm.group_norm(g(f(5, 64)), g(f(64)), g(f(64)), num_groups=4))",
    "backward(modules.LayerNorm(64)(g(f(5, 64)), residual=g(f(5, 64)), prenorm=True))",
    "backward(modules.RMSNormLinear(64)(g(f(5, 64)), g(f(48, 64)), None))",
    "backward(modules.FusedRMSNormGated(64)(g(f(5, 64)), g(f(5, 64))))",
    "backward(modules.FusedLayerNormGated(64)(g(f(5, 64)), g(f(5, 64))))",
    "backward(modules.FusedRMSNormGated(1024)(g(f(5, 1024)), g(f(5, 1024))))",
    "backward(modules.FusedRMSNormSwishGateLinear(64)(g(f(5, 64)), g(f(5, 64)), g(f(48, 64)),"
    " None))",
    "backward(l2norm.l2norm(g(f(5, 64))))",
    "backward(l2norm.l2norm(g(f(5, 1024))))",
    "backward(l2warp.l2_warp(g(f(2, 5, 64)).sum(), g(f(2, 5, 64))))",
    "backward(rotary.rotary_embedding(g(f(2, 9, 4, 16)), f(9, 8), f(9, 8)))",
    "backward(rotary.rotary_embedding(g(f(2, 9, 4, 16)), f(9, 8), f(9, 8), interleaved=True))",
    "backward(shift.token_shift(g(f(2, 9, 32))))",
    "backward(shift.token_shift(g(f(2, 600, 32))))",
    *(
        f"backward(act.{name}(g(f(5, 64))))"
        for name in ("sigmoid", "logsigmoid", "swish", "sqrelu", "fast_gelu_impl")
    ),
    "backward(act.bias_gelu(g(f(5, 64)), g(f(64))))",
    "backward(act.swiglu(g(f(5, 64)), g(f(5, 64))))",
    "backward(act.swiglu_linear(g(f(5, 64)), g(f(5, 64)), g(f(48, 64)), None))",
    "backward(losses.FusedCrossEntropyLoss()(g(f(6, 100)), i(100, 6)))",
    "backward(losses.FusedCrossEntropyLoss(label_smoothing=0.1, lse_square_scale=0.1)(g(f(6, 100)),"
    " i(100, 6)))",
    "backward(linear_losses.FusedLinearCrossEntropyLoss()(g(f(6, 32)), i(100, 6), g(f(100, 32))))",
    "backward(kl.FusedKLDivLoss()(g(f(6, 32)), f(6, 32), g(f(100, 32)), f(100, 32)))",
    "backward(modules.FusedBitLinear(64, 48)(g(f(5, 64))))",
    "backward(addcmul.fused_addcmul_rwkv7(g(f(2, 9, 32)), g(f(2, 9, 32)), *(g(f(1, 1, 32))"
    " for _ in range(6))))",
    "backward(k_update.fused_k_rwkv7(g(f(2, 9, 32)), g(f(2, 9, 32)), g(f(32))))",
    "backward(mixing.channel_mixing_rwkv7(g(f(2, 9, 32)), f(2, 32), g(f(32)), g(f(32, 64)),"
    " g(f(64, 32))))",
    "backward(utils.mean_pooling(g(f(1, 64, 2, 32)), 16))",
    "utils.chunk_global_cumsum(f(1, 64, 2))",
    "utils.chunk_global_cumsum(f(1, 64, 2, 32))",
    "utils.chunk_local_cumsum(f(1, 64, 2), 16)",
    "utils.solve_tril(torch.tril(f(1, 64, 2, 16).transpose(1, 2), -1).transpose(1, 2)"
    ".contiguous())",
    "utils.softmax_fwd(f(5, 64))",
    "utils.logsumexp_fwd(f(5, 64))",
    "utils.matmul(f(20, 40), f(40, 24))",
    "utils.addmm(f(24), f(20, 40), f(40, 24))",
)

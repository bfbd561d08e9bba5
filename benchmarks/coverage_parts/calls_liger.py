"""Calls of Liger's functions, forward and backward."""

NAMES = {
    "ops": "liger_kernel.ops",
    "lf": "liger_kernel.transformers.functional",
    "llama4": "liger_kernel.ops.llama4_rope",
    "experimental": "liger_kernel.ops.experimental.embedding",
    "int2": "liger_kernel.ops.experimental.mm_int8int2",
}
_MASK = "torch.ones(2, 5, dtype=torch.int32)"
_GRPO = (
    "backward(ops.GrpoLossFunction.apply(g(f(2, 6, 40)), f(2, 5), f(2, 5), i(40, 2, 5), f(2),"
    f" {_MASK}, 0.9, 0.04, 0.2, 0.2, False"
)

CALLS = (
    "backward(lf.liger_attn_res(g(f(4, 2, 5, 32)), g(f(32)), g(f(32))))",
    "backward(lf.liger_cross_entropy(g(f(6, 100)), i(100, 6)))",
    "backward(lf.liger_cross_entropy(g(bf(6, 100)), i(100, 6), label_smoothing=0.1,"
    " lse_square_scale=0.1, softcap=30.0, return_z_loss=True))",
    "backward(lf.liger_cross_entropy(g(f(6, 100)), i(100, 6), weight=u(100), reduction='sum'))",
    "backward(lf.liger_cross_entropy(g(f(6, 100)), i(100, 6), return_token_accuracy=True,"
    " return_predicted_tokens=True))",
    "backward(lf.liger_dyt(g(f(3, 5, 64)), g(f(1)), g(f(64)), g(f(64))))",
    "backward(lf.liger_fused_add_rms_norm(g(f(5, 64)), g(f(5, 64)), g(f(64)), 1e-6))",
    "backward(lf.liger_fused_linear_cross_entropy(g(f(6, 32)), g(f(100, 32)), i(100, 6)))",
    "backward(lf.liger_fused_linear_jsd(g(f(6, 32)), g(f(100, 32)), f(6, 32), f(100, 32)))",
    "backward(lf.liger_fused_linear_kl_div(g(f(6, 32)), g(f(100, 32)), torch.softmax(f(6, 100),"
    " 1)))",
    "backward(lf.liger_fused_neighborhood_attention(g(f(1, 2, 32, 16)), g(f(1, 2, 32, 16)),"
    " g(f(1, 2, 32, 16)), 5))",
    "backward(lf.liger_geglu(g(f(5, 70)), g(f(5, 70))))",
    "backward(lf.liger_group_norm(g(f(2, 8, 30)), g(f(8)), g(f(8)), 8, 4, 1e-6))",
    "backward(lf.liger_jsd(g(torch.log_softmax(f(6, 100), 1).detach()),"
    " torch.log_softmax(f(6, 100), 1)))",
    "backward(lf.liger_jsd(g(torch.log_softmax(f(6, 100), 1).detach()),"
    " torch.log_softmax(f(6, 100), 1), beta=0.0))",
    "backward(lf.liger_kl_div(g(torch.log_softmax(f(6, 100), 1).detach()),"
    " torch.softmax(f(6, 100), 1), reduction='batchmean'))",
    "backward(lf.liger_layer_norm(g(f(5, 70)), g(f(70)), g(f(70)), 1e-6))",
    "backward(ops.LigerLlama4RopeFunction.apply(g(f(2, 5, 4, 16)), g(f(2, 5, 2, 16)),"
    " torch.polar(torch.ones(5, 8), f(5, 8))))",
    "backward(lf.liger_mhc_coeffs(g(bf(2, 3, 4, 32)), g(bf(128, 24)), g(f(24)),"
    " g(torch.tensor(0.5)), g(torch.tensor(0.5)), g(torch.tensor(0.5))))",
    "backward(lf.liger_mhc_pre(g(bf(2, 3, 4, 32)), g(f(2, 3, 4))))",
    "backward(lf.liger_mhc_post_res(g(bf(2, 3, 4, 32)), g(bf(2, 3, 32)), g(f(2, 3, 4)),"
    " g(f(2, 3, 4, 4))))",
    "backward(lf.liger_modulated_rms_norm(g(f(2, 5, 64)), g(f(64)), g(f(2, 64)), g(f(2, 64))))",
    "backward(lf.liger_multi_token_attention(g(f(1, 2, 16, 16)), g(f(2, 2, 3, 3)), g(f(2)),"
    " padding=1))",
    "backward(lf.liger_multi_token_attention(g(f(1, 2, 16, 16)), g(f(2, 2, 3, 3)), g(f(2)),"
    " padding=1, sparse=True))",
    "backward(lf.liger_poly_norm(g(f(5, 70)), g(f(3)), g(torch.tensor(0.5))))",
    "backward(lf.liger_qwen2vl_mrope(g(f(1, 4, 5, 16)), g(f(1, 2, 5, 16)), f(3, 1, 5, 16),"
    " f(3, 1, 5, 16), [2, 3, 3]))",
    "backward(lf.liger_relu_squared(g(f(5, 70))))",
    "backward(lf.liger_rms_norm(g(f(5, 70)), g(f(70)), 1e-6))",
    "backward(lf.liger_rms_norm(g(bf(5, 70)), g(bf(70)), 1e-6, 1.0, 'gemma'))",
    "backward(ops.LigerRMSNormFunction.apply(g(f(5, 70)), g(f(70)), 1e-6, 0.0, 'llama', True,"
    " True))",
    "backward(ops.LigerRMSNormFunction.apply(g(f(5, 70)), g(f(70)), 1e-6, 0.0, 'llama', True,"
    " False))",
    "backward(lf.liger_rope(g(f(1, 4, 5, 16)), g(f(1, 2, 5, 16)), f(1, 5, 16), f(1, 5, 16)))",
    "backward(lf.liger_softmax(g(f(5, 70))))",
    "backward(lf.liger_softmax(g(f(2, 40000))))",
    "backward(lf.liger_sparsemax(g(f(5, 70))))",
    "backward(lf.liger_swiglu(g(f(5, 70)), g(f(5, 70))))",
    "backward(lf.liger_tvd(g(torch.softmax(f(6, 100), 1).detach()), torch.softmax(f(6, 100), 1)))",
    "backward(ops.LigerFusedCETVDFunction.apply(g(f(6, 100)), f(6, 100), i(100, 6)))",
    "backward(ops.LigerFusedGateUpSiLUMulFunction.apply(g(f(5, 64))))",
    "backward(ops.LigerMLPFunction.apply(g(bf(2, 8, 32)), g(bf(64, 32)), g(bf(64, 32)),"
    " g(bf(32, 64))))",
    "backward(ops.LigerFusedMoEFunction.apply(g(bf(12, 32)), g(bf(4, 64, 32)), g(bf(4, 32, 32)),"
    " i32(4, 12, 2), u(12, 2)))",
    "backward(ops.LigerEmbeddingFunction.apply(g(f(30, 16)), i(30, 4, 5)))",
    "backward(experimental.LigerEmbeddingFunction.apply(g(f(30, 16)), i(30, 4, 5)))",
    "int2.matmul((f(16, 1024) * 20).to(torch.int8), torch.randint(0, 255, (256, 32),"
    " dtype=torch.uint8))",
    f"{_GRPO}))",
    f"{_GRPO}, 'dapo', None, True, 'sequence'))",
)

"""vLLM's fused MoE and unified attention."""

from enum import IntEnum
from functools import partial
from importlib import import_module
from types import SimpleNamespace

import torch
import triton
import triton.language as tl

from .stand_ins import StandIns

PACKAGE = "vllm"
CHECKOUT = "vllm"
_MOE = "vllm.model_executor.layers.fused_moe.fused_moe"
_ATTENTION = "vllm.v1.attention.ops.triton_unified_attention"
_REAL = {_MOE, _ATTENTION, "vllm.v1.attention.ops.triton_attention_helpers"}


class _KVQuantMode(IntEnum):
    """The modes that the attention kernel itself knows, by the numbers that it tells them by."""

    NONE = 0
    FP8_PER_TENSOR = 1
    INT8_PER_TOKEN_HEAD = 2
    FP8_PER_TOKEN_HEAD = 3
    INT4_PER_TOKEN_HEAD = 4


_ANSWERS = {
    "vllm.triton_utils.tl": tl,
    "vllm.triton_utils.triton": triton,
    "vllm.envs.VLLM_BATCH_INVARIANT": False,
    "vllm.platforms.current_platform": SimpleNamespace(
        fp8_dtype=lambda: torch.float8_e4m3fn,
        is_device_capability_family=lambda family: False,
    ),
    "vllm.v1.kv_cache_interface.KVQuantMode": _KVQuantMode,
    "vllm.model_executor.layers.fused_moe.utils.enable_swap_ab": lambda rows, columns: False,
    "vllm.model_executor.layers.fused_moe.utils.resolve_moe_use_td": lambda: False,
}


def prepare(checkouts):
    """Finds the package in its checkout; of its modules only those of the two kernels run."""
    StandIns(checkouts / CHECKOUT / "vllm", _REAL, _ANSWERS).install()


def load(checkouts):
    """Nothing launches as it is imported."""


def _aligned(experts, count, block):
    """Tokens sorted by their expert, each expert's padded to whole blocks; expert of each block."""
    flat = experts.flatten()
    tokens, blocks = [], []
    for expert in range(count):
        mine = (flat == expert).nonzero().flatten()
        missing = -len(mine) % block
        tokens.append(torch.cat([mine, torch.full((missing,), flat.numel())]))
        blocks += [expert] * ((len(mine) + missing) // block)
    tokens = torch.cat(tokens).to(torch.int32)
    spare = torch.full((block,), flat.numel(), dtype=torch.int32)  # beyond what is counted
    blocks = torch.tensor([*blocks, 0], dtype=torch.int32)
    return torch.cat([tokens, spare]), blocks, torch.tensor([len(tokens)], dtype=torch.int32)


_CONFIG = {"BLOCK_SIZE_M": 16, "BLOCK_SIZE_N": 32, "BLOCK_SIZE_K": 32, "GROUP_SIZE_M": 2}
_UNQUANTIZED = {
    "use_fp8_w8a8": False,
    "use_int8_w8a8": False,
    "use_int8_w8a16": False,
    "use_int4_w4a16": False,
    "per_channel_quant": False,
}


def moe(checkouts, dtype=torch.bfloat16, *, bias=False, weighted=False, fp8=False):
    """Tokens times the weights of the experts that they are routed to."""
    module = import_module(_MOE)
    tokens, top_k, experts, rows, inner = 37, 2, 5, 72, 96
    a = torch.randn(tokens, inner)
    b = torch.randn(experts, rows, inner)
    c = torch.zeros(tokens, top_k, rows, dtype=dtype)
    a_scale = b_scale = block = None
    if fp8:
        a, b = a.to(torch.float8_e4m3fn), b.to(torch.float8_e4m3fn)
        a_scale, b_scale = torch.rand(tokens, 3), torch.rand(experts, 3, 3)
        block = [32, 32]
    else:
        a, b = a.to(dtype), b.to(dtype)
    routed = torch.stack([torch.randperm(experts)[:top_k] for _ in range(tokens)])
    sorted_ids, block_experts, padded = _aligned(routed, experts, _CONFIG["BLOCK_SIZE_M"])
    module.invoke_fused_moe_triton_kernel(
        *(a, b, c, a_scale, b_scale, torch.rand(tokens, top_k), sorted_ids, block_experts, padded),
        mul_routed_weight=weighted,
        top_k=top_k,
        config=_CONFIG,
        compute_type={torch.bfloat16: tl.bfloat16, torch.float32: tl.float32}[dtype],
        **{**_UNQUANTIZED, "use_fp8_w8a8": fp8},
        block_shape=block,
        B_bias=torch.randn(experts, rows, dtype=dtype) if bias else None,
    )


def moe_int4(checkouts):
    """The same for weights of four bits, with scales and zero points for groups."""
    module = import_module(_MOE)
    tokens, top_k, experts, rows, inner, group = 37, 2, 5, 64, 128, 64
    routed = torch.stack([torch.randperm(experts)[:top_k] for _ in range(tokens)])
    sorted_ids, block_experts, padded = _aligned(routed, experts, 16)
    module.invoke_fused_moe_wna16_triton_kernel(
        torch.randn(tokens, inner, dtype=torch.bfloat16),
        torch.randint(0, 256, (experts, rows, inner // 2), dtype=torch.uint8),
        torch.zeros(tokens, top_k, rows, dtype=torch.bfloat16),
        torch.rand(experts, rows, inner // group).bfloat16(),
        torch.randint(0, 256, (experts, rows // 2, inner // group), dtype=torch.uint8),
        torch.rand(tokens, top_k),
        *(sorted_ids, block_experts, padded),
        mul_routed_weight=True,
        top_k=top_k,
        config={"BLOCK_SIZE_M": 16, "GROUP_SIZE_M": 1, "SPLIT_K": 1},
        compute_type=tl.bfloat16,
        use_int8_w8a16=False,
        use_int4_w4a16=True,
        block_shape=[0, group],
    )


def attention(checkouts, queries, contexts, *, split=False, window=-1, softcap=0.0, sinks=False):
    """Attention to keys and values in pages of 16, of sequences that are packed into one.

    Args:
      checkouts: where vLLM is.
      queries: how many queries each sequence has.
      contexts: how many keys it has.
      split: whether segments of the keys are taken apart and put together by a second kernel.
      window: how far back a query looks; -1 for all the way.
      softcap: of the scores.
      sinks: whether heads have attention sinks.
    """
    module = import_module(_ATTENTION)
    heads, kv_heads, width, page, segments = 8, 2, 64, 16, 4
    dtype = torch.bfloat16
    tokens = sum(queries)
    q = torch.randn(tokens, heads, width).to(dtype)
    pages = sum(-(-each // page) for each in contexts) + 3
    k, v = (torch.randn(pages, page, kv_heads, width).to(dtype) for _ in range(2))
    order = iter(torch.randperm(pages).tolist())
    table = torch.zeros(len(queries), -(-max(contexts) // page), dtype=torch.int32)
    for row, context in zip(table, contexts, strict=True):
        for number in range(-(-context // page)):
            row[number] = next(order)
    scratch = {}
    if split:
        scratch = {
            "seq_threshold_3D": 1000,
            "num_par_softmax_segments": segments,
            "softmax_segm_output": torch.zeros(tokens, heads, segments, width),
            "softmax_segm_max": torch.zeros(tokens, heads, segments),
            "softmax_segm_expsum": torch.zeros(tokens, heads, segments),
        }
    module.unified_attention(
        *(q, k, v, torch.zeros_like(q)),
        cu_seqlens_q=torch.tensor([0, *queries]).cumsum(0).to(torch.int32),
        max_seqlen_q=max(queries),
        seqused_k=torch.tensor(contexts, dtype=torch.int32),
        max_seqlen_k=max(contexts),
        softmax_scale=width**-0.5,
        causal=True,
        window_size=(window, window if window < 0 else 0),
        block_table=table,
        softcap=softcap,
        q_descale=None,
        k_descale=None,
        v_descale=None,
        sinks=torch.randn(heads).to(dtype) if sinks else None,
        **scratch,
    )


CASES = {
    "fused MoE": moe,
    "fused MoE, bias, weighted": partial(moe, bias=True, weighted=True),
    "fused MoE, fp8 in blocks": partial(moe, fp8=True),
    "fused MoE, int4": moe_int4,
    "unified attention, prefill": partial(attention, queries=(19, 7), contexts=(45, 30)),
    "unified attention, window, softcap, sinks": partial(
        attention, queries=(19, 7), contexts=(45, 30), window=20, softcap=20.0, sinks=True
    ),
    "unified attention, decode": partial(
        attention, queries=(1, 1, 1), contexts=(45, 30, 100), split=True
    ),
}

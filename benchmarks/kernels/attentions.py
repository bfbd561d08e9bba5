"""Attention: forward and backward over whole sequences, and one query against paged keys."""

import math
from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas.ops.tpu import flash_attention as flash
from jax.experimental.pallas.ops.tpu.paged_attention import paged_attention
from jax.experimental.pallas.ops.tpu.splash_attention import (
    splash_attention_kernel as splash,
)
from jax.experimental.pallas.ops.tpu.splash_attention import (
    splash_attention_mask as masks,
)

from benchmarks.kernels.case import Case, Function, Launch, Translated, array, text_of
from benchmarks.kernels.pallas_calls import MIB, parameters

BF16, F32 = jnp.bfloat16, jnp.float32
TARGET = 1.3
LOWEST = -1e30
VMEM = 100 * MIB


def plain_attention(q: Any, k: Any, v: Any, scale: float, causal: bool) -> Any:
    q, k, v = (each.swapaxes(1, 2) for each in (q, k, v))
    out = jax.nn.dot_product_attention(q, k, v, scale=scale, is_causal=causal)
    return out.swapaxes(1, 2)


def flash_blocks(rows: int, major: int, minor: int) -> flash.BlockSizes:
    return flash.BlockSizes(
        block_q=rows,
        block_k_major=major,
        block_k=minor,
        block_b=1,
        block_q_major_dkv=rows,
        block_k_major_dkv=major,
        block_k_dkv=minor,
        block_q_dkv=min(rows, 512),
        block_k_major_dq=major,
        block_k_dq=minor,
        block_q_dq=min(rows, 512),
    )


def of_flash(scale: float, causal: bool, rows: int, major: int, minor: int) -> Function:
    sizes = flash_blocks(rows, major, minor)
    return lambda q, k, v: flash.flash_attention(
        q, k, v, causal=causal, sm_scale=scale, block_sizes=sizes
    )


def of_splash(
    scale: float, causal: bool, heads: int, length: int, block: int, compute: int
) -> Function:
    mask = masks.CausalMask((length, length)) if causal else masks.FullMask((length, length))
    sizes = splash.BlockSizes(
        block_q=block,
        block_kv=block,
        block_kv_compute=compute,
        block_q_dkv=block,
        block_kv_dkv=block,
        block_kv_dkv_compute=compute,
        use_fused_bwd_kernel=True,
    )

    def call(q: Any, k: Any, v: Any) -> Any:
        kernel = splash.make_splash_mha_single_device(
            masks.MultiHeadMask([mask] * heads), block_sizes=sizes
        )
        return jax.vmap(kernel)((q * scale).astype(q.dtype), k, v)

    return call


def of_tokamax(
    scale: float, causal: bool, length: int, block: int, compute: int, innermost: bool
) -> dict[str, Function]:
    """Tokamax's attention, where it is installed; it can take the sequence innermost."""
    try:
        from tokamax._src.ops.experimental.tpu.splash_attention import (
            splash_attention_kernel,
            splash_attention_mask,
        )
    except ImportError:
        return {}
    order = splash_attention_kernel.QKVLayout(2 if innermost else 1)
    config = splash_attention_kernel.SplashConfig(
        block_q=block,
        block_kv=block,
        block_kv_compute=compute,
        block_q_dkv=block,
        block_kv_dkv=block,
        block_kv_dkv_compute=compute,
        q_layout=order,
        k_layout=order,
        v_layout=order,
    )
    kind = "CausalMask" if causal else "FullMask"
    mask = getattr(splash_attention_mask, kind)((length, length))

    def call(q: Any, k: Any, v: Any) -> Any:
        kernel = splash_attention_kernel.make_splash_mha_single_device(mask, config=config)
        return jax.vmap(kernel)((q * scale).astype(q.dtype), k, v)

    where = ", sequence innermost" if innermost else ""
    return {f"tokamax splash {block}, {compute}{where}": call}


def whole_rows(scale: float, causal: bool, columns: int) -> Function:
    """All scores of a block of queries at once, transposed.

    Keys stand along sublanes and queries along lanes: the largest score and the sum of shares are
    then plain vector operations, and arrays whose heads are narrower than 128, which XLA lays out
    with the sequence innermost, are taken as they are.
    """

    def kernel(q: Any, k: Any, v: Any, out: Any) -> None:
        contract = (((0,), (0,)), ((), ()))
        score = lax.dot_general(k[...], q[...], contract, preferred_element_type=F32) * scale
        if causal:
            at = pl.program_id(2) * columns + lax.broadcasted_iota(jnp.int32, score.shape, 1)
            score = jnp.where(at >= lax.broadcasted_iota(jnp.int32, score.shape, 0), score, LOWEST)
        share = jnp.exp(score - jnp.max(score, axis=0, keepdims=True))
        total = jnp.sum(share, axis=0, keepdims=True)
        found = jnp.dot(v[...], share.astype(v.dtype), preferred_element_type=F32)
        out[...] = (found / total).astype(out.dtype)

    def call(q: Any, k: Any, v: Any) -> Any:
        batch, heads, length, width = q.shape
        q, k, v = (each.swapaxes(2, 3) for each in (q, k, v))
        block = pl.BlockSpec((None, None, width, columns), lambda b, h, i: (b, h, 0, i))
        whole = pl.BlockSpec((None, None, width, length), lambda b, h, i: (b, h, 0, 0))
        return pl.pallas_call(
            kernel,
            grid=(batch, heads, length // columns),
            in_specs=[block, whole, whole],
            out_specs=block,
            out_shape=jax.ShapeDtypeStruct(q.shape, q.dtype),
            compiler_params=parameters("parallel", "parallel", "arbitrary", vmem=VMEM),
        )(q, k, v).swapaxes(2, 3)

    return call


def forward_launch(q: Any, scale: float, causal: bool) -> Launch:
    batch, heads, length, width = q.shape
    lse = array(batch, heads, length, dtype=F32)
    return Launch(
        file="attention.py",
        kernel="forward",
        arrays={
            "q_ptr": text_of(q),
            "k_ptr": text_of(q),
            "v_ptr": text_of(q),
            "out_ptr": text_of(q),
            "lse_ptr": text_of(lse),
        },
        scalars={"LENGTH": length, "scale": scale},
        constants={"WIDTH": width, "BLOCK_M": 128, "BLOCK_N": 64, "CAUSAL": causal},
        grid=(length // 128, batch * heads),
    )


def title(q: Any, causal: bool, what: str) -> str:
    return f"attention {what} bf16 {'x'.join(map(str, q.shape))}{' causal' if causal else ''}"


def forward_case(shape: tuple[int, int, int, int], causal: bool, small: bool = True) -> Case:
    q = array(*shape, dtype=BF16)
    _batch, heads, length, width = shape
    scale = 1 / math.sqrt(width)

    def emitted(kernels: Mapping[str, Translated], interpret: bool) -> Function:
        def call(q: Any, k: Any, v: Any) -> Any:
            return kernels["forward"](interpret, q_ptr=q, k_ptr=k, v_ptr=v)["out_ptr"]

        return call

    large, middle = min(1024, length), min(512, length)
    flash_block = middle if causal else large
    by_hand = {
        f"jax flash {flash_block}, {middle}": of_flash(
            scale, causal, flash_block, flash_block, middle
        ),
        f"jax splash {large}": of_splash(scale, causal, heads, length, large, large),
        f"whole rows, {middle} queries": whole_rows(scale, causal, middle),
        **of_tokamax(scale, causal, length, large, middle, width < 128),
    }
    return Case(
        name=title(q, causal, "forward"),
        arguments=[q, q, q],
        launches={"forward": forward_launch(q, scale, causal)},
        emitted=emitted,
        by_hand=by_hand,
        plain=lambda q, k, v: plain_attention(q, k, v, scale, causal),
        target=TARGET,
        tolerance=2e-2,
        small=forward_case((1, 2, 256, width), causal, small=False) if small else None,
    )


def backward_case(shape: tuple[int, int, int, int], causal: bool, small: bool = True) -> Case:
    """Gradients of queries, keys and values, the forward pass that they need among it."""
    q = array(*shape, dtype=BF16)
    batch, heads, length, width = shape
    scale = 1 / math.sqrt(width)
    one_each = text_of(array(batch, heads, length, dtype=F32))
    names = ("q_ptr", "k_ptr", "v_ptr", "do_ptr")
    arrays = {**{name: text_of(q) for name in names}, "lse_ptr": one_each, "delta_ptr": one_each}
    scalars = {"LENGTH": length, "scale": scale}
    constants = {"WIDTH": width, "BLOCK_M": 64, "BLOCK_N": 128, "CAUSAL": causal}

    def emitted(kernels: Mapping[str, Translated], interpret: bool) -> Function:
        def call(q: Any, k: Any, v: Any, do: Any) -> Any:
            ahead = kernels["forward"](interpret, q_ptr=q, k_ptr=k, v_ptr=v)
            out, lse = ahead["out_ptr"], ahead["lse_ptr"]
            delta = kernels["rows"](interpret, out_ptr=out, do_ptr=do)["delta_ptr"]
            given = {
                "q_ptr": q,
                "k_ptr": k,
                "v_ptr": v,
                "do_ptr": do,
                "lse_ptr": lse,
                "delta_ptr": delta,
            }
            keys = kernels["keys"](interpret, **given)
            queries = kernels["queries"](interpret, **given)
            return queries["dq_ptr"], keys["dk_ptr"], keys["dv_ptr"]

        return call

    def gradients(function: Function) -> Function:
        return lambda q, k, v, do: jax.vjp(function, q, k, v)[1](do)

    large, middle = min(1024, length), min(512, length)
    by_hand = {
        f"jax flash {large}, {middle}": of_flash(scale, causal, large, large, middle),
        f"jax splash {large}": of_splash(scale, causal, heads, length, large, large),
        **of_tokamax(scale, causal, length, large, middle, width < 128),
    }
    return Case(
        name=title(q, causal, "backward"),
        arguments=[q, q, q, q],
        launches={
            "forward": forward_launch(q, scale, causal),
            "rows": Launch(
                file="attention.py",
                kernel="backward_rows",
                arrays={"out_ptr": text_of(q), "do_ptr": text_of(q), "delta_ptr": one_each},
                constants={"WIDTH": width, "BLOCK": 128},
                grid=(batch * heads * length // 128,),
            ),
            "keys": Launch(
                file="attention.py",
                kernel="backward_keys",
                arrays={**arrays, "dk_ptr": text_of(q), "dv_ptr": text_of(q)},
                scalars=scalars,
                constants=constants,
                grid=(length // 128, batch * heads),
            ),
            "queries": Launch(
                file="attention.py",
                kernel="backward_queries",
                arrays={**arrays, "dq_ptr": text_of(q)},
                scalars=scalars,
                constants={**constants, "BLOCK_M": 128, "BLOCK_N": 64},
                grid=(length // 128, batch * heads),
            ),
        },
        emitted=emitted,
        by_hand={name: gradients(function) for name, function in by_hand.items()},
        plain=gradients(lambda q, k, v: plain_attention(q, k, v, scale, causal)),
        target=TARGET,
        tolerance=3e-2,
        small=backward_case((1, 2, 256, width), causal, small=False) if small else None,
    )


def paged_case(
    sequences: int, heads: int, group: int, width: int, page: int, table: int, small: bool = True
) -> Case:
    """One new token for each sequence; `group` heads of queries for each of keys."""
    rng = np.random.default_rng(0)
    pages = sequences * table
    q = array(sequences, heads * group, width, dtype=BF16)
    keys = array(heads, pages, page, width, dtype=BF16)
    lengths = rng.integers(page, table * page + 1, sequences).astype(np.int32)
    lengths[0] = table * page
    tables = rng.permutation(pages).reshape(sequences, table).astype(np.int32)
    scale = 1 / math.sqrt(width)

    def plain(q: Any, k: Any, v: Any, lengths: Any, tables: Any) -> Any:
        grouped = q.reshape(sequences, heads, group, width)
        k, v = (
            each.at[:, tables].get(mode="promise_in_bounds").reshape(heads, sequences, -1, width)
            for each in (k, v)
        )
        score = jnp.einsum("shgd,hstd->shgt", grouped, k, preferred_element_type=F32) * scale
        seen = jnp.arange(score.shape[-1]) < lengths[:, None, None, None]
        share = jax.nn.softmax(jnp.where(seen, score, LOWEST), axis=-1).astype(v.dtype)
        return jnp.einsum("shgt,hstd->shgd", share, v).reshape(q.shape)

    def library(blocks: int) -> Function:
        def call(q: Any, k: Any, v: Any, lengths: Any, tables: Any) -> Any:
            scaled = (q * scale).astype(q.dtype)
            return paged_attention(
                scaled, k, v, lengths, tables, pages_per_compute_block=min(blocks, table)
            )

        return call

    def emitted(kernels: Mapping[str, Translated], interpret: bool) -> Function:
        def call(q: Any, k: Any, v: Any, lengths: Any, tables: Any) -> Any:
            return kernels["paged"](
                interpret, q_ptr=q, k_ptr=k, v_ptr=v, length_ptr=lengths, page_ptr=tables
            )["out_ptr"]

        return call

    return Case(
        name=f"paged attention bf16 {sequences} sequences, {heads}x{group}x{width}, page {page}",
        arguments=[q, keys, keys, lengths, tables],
        launches={
            "paged": Launch(
                file="attention.py",
                kernel="paged",
                arrays={
                    "q_ptr": text_of(q),
                    "k_ptr": text_of(keys),
                    "v_ptr": text_of(keys),
                    "length_ptr": f"i32[{sequences}]",
                    "page_ptr": f"i32[{sequences},{table}]",
                    "out_ptr": text_of(q),
                },
                scalars={"HEADS": heads, "PAGES": pages, "TABLE": table, "scale": scale},
                constants={"GROUP": group, "WIDTH": width, "PAGE": page},
                grid=(sequences, heads),
            )
        },
        emitted=emitted,
        by_hand={
            "jax paged, 8 pages": library(8),
            "jax paged, 32 pages": library(32),
        },
        plain=plain,
        target=TARGET,
        tolerance=2e-2,
        small=paged_case(2, 2, group, width, page, 4, small=False) if small else None,
    )


def cases() -> Iterator[Case]:
    shapes = [(4, 8, length, width) for length in (1024, 2048) for width in (64, 128)]
    for shape, causal in product(shapes, (False, True)):
        yield forward_case(shape, causal)
    for shape, causal in product(shapes, (False, True)):
        yield backward_case(shape, causal)
    yield paged_case(32, 8, 16, 128, 32, 64)

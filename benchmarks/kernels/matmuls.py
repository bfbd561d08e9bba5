"""Products of matrices: of bfloat16, of integers that are scaled, and by expert."""

from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu
from jax.experimental.pallas.ops.tpu import matmul as library
from jax.experimental.pallas.ops.tpu.megablox.gmm import gmm

from benchmarks.kernels.case import Case, Function, Launch, array, one, text_of
from benchmarks.kernels.pallas_calls import MIB, parameters

BF16, F32, INT8, INT32 = jnp.bfloat16, jnp.float32, jnp.int8, jnp.int32
TARGET = 1.1
VMEM = 64 * MIB


def tiled(
    rows: int, columns: int, inner: int, product: Callable[..., Any], out: jax.ShapeDtypeStruct
) -> Function:
    """A product in tiles: `x`, `w` and one number a column of `w`, or `x` and `w` alone.

    With all of the inner dimension in a tile nothing is carried from one step to the next.
    """

    def call(x: Any, w: Any, *scale: Any) -> Any:
        steps = x.shape[1] // inner
        kept = w.shape[0] * inner // x.shape[1]  # rows of `w`, which may be packed

        def kernel(x_ref: Any, w_ref: Any, *rest: Any) -> None:
            *scale_ref, out_ref, total = rest
            part = product(x_ref[...], w_ref[...])

            def finish(found: Any) -> None:
                found = found * scale_ref[0][...] if scale_ref else found
                out_ref[...] = found.astype(out_ref.dtype)

            if steps == 1:
                finish(part)
                return
            step = pl.program_id(2)

            @pl.when(step == 0)
            def _() -> None:
                total[...] = part

            @pl.when(step > 0)
            def _() -> None:
                total[...] += part

            @pl.when(step == steps - 1)
            def _() -> None:
                finish(total[...])

        return pl.pallas_call(
            kernel,
            grid=(x.shape[0] // rows, w.shape[1] // columns, steps),
            in_specs=[
                pl.BlockSpec((rows, inner), lambda i, j, k: (i, k)),
                pl.BlockSpec((kept, columns), lambda i, j, k: (k, j)),
                *(pl.BlockSpec((1, columns), lambda i, j, k: (0, j)) for _ in scale),
            ],
            out_specs=pl.BlockSpec((rows, columns), lambda i, j, k: (i, j)),
            out_shape=out,
            scratch_shapes=[pltpu.VMEM((rows, columns) if steps > 1 else (8, 128), F32)],
            compiler_params=parameters("parallel", "parallel", "arbitrary", vmem=VMEM),
        )(x, w, *(each[None, :] for each in scale))

    return call


def dot(x: Any, w: Any) -> Any:
    return jnp.dot(x, w, preferred_element_type=F32)


def matmul_case(m: int, n: int, k: int, small: bool = True) -> Case:
    a, b, c = array(m, k, dtype=BF16), array(k, n, dtype=BF16), array(m, n, dtype=BF16)
    tiles = [(1024, 512, 1024), (512, 1024, 1024), (1024, 1024, 512), (512, 512, 1024)]
    tiles = list(
        dict.fromkeys((min(each[0], m), min(each[1], n), min(each[2], k)) for each in tiles)
    )
    by_hand = {"x".join(map(str, tile)): tiled(*tile, dot, c) for tile in tiles}
    by_hand["jax matmul"] = lambda x, y: library.matmul(
        x, y, block_shape=(min(512, m), min(512, n)), block_k=min(512, k)
    )
    return Case(
        name=f"matmul bf16 {m}x{n}x{k}",
        arguments=[a, b],
        launches={
            "matmul": Launch(
                file="matmul.py",
                kernel="matmul",
                arrays={"a_ptr": text_of(a), "b_ptr": text_of(b), "c_ptr": text_of(c)},
                scalars={"M": m, "N": n, "K": k, "stride_am": k, "stride_bk": n, "stride_cm": n},
                constants={"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 64, "GROUP": 8},
                grid=((m // 128) * (n // 128),),
            )
        },
        emitted=one("matmul", ["c_ptr"], ["a_ptr", "b_ptr"]),
        by_hand=by_hand,
        plain=lambda x, y: dot(x, y).astype(BF16),
        target=TARGET,
        tolerance=1e-2,
        small=matmul_case(256, 256, 256, small=False) if small else None,
    )


def unpacked(w: Any) -> tuple[Any, Any]:
    """The two halves of packed four-bit integers, as bfloat16."""
    wide = w.astype(INT32)
    return ((wide & 15) - 8).astype(BF16), ((wide >> 4 & 15) - 8).astype(BF16)


def int8_case(m: int, n: int, k: int, small: bool = True) -> Case:
    x, w = array(m, k, dtype=BF16), array(k, n, dtype=INT8)
    scale, out = array(n, dtype=F32), array(m, n, dtype=BF16)

    def product(x: Any, w: Any) -> Any:
        return dot(x, w.astype(BF16))

    tiles = [(1024, 512, 1024), (512, 1024, 1024), (512, 512, 2048), (1024, 512, 2048)]
    tiles = list(
        dict.fromkeys((min(each[0], m), min(each[1], n), min(each[2], k)) for each in tiles)
    )
    return Case(
        name=f"int8 matmul {m}x{n}x{k}",
        arguments=[x, w, scale],
        launches={
            "matmul": Launch(
                file="matmul.py",
                kernel="int8_matmul",
                arrays={
                    "x_ptr": text_of(x),
                    "w_ptr": text_of(w),
                    "scale_ptr": text_of(scale),
                    "out_ptr": text_of(out),
                },
                scalars={"M": m, "N": n, "K": k},
                constants={"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 64},
                grid=(m // 128, n // 128),
            )
        },
        emitted=one("matmul", ["out_ptr"], ["x_ptr", "w_ptr", "scale_ptr"]),
        by_hand={"x".join(map(str, tile)): tiled(*tile, product, out) for tile in tiles},
        plain=lambda x, w, scale: (product(x, w) * scale).astype(BF16),
        target=TARGET,
        tolerance=1e-2,
        small=int8_case(128, 256, 256, small=False) if small else None,
    )


def int4_case(m: int, n: int, k: int, small: bool = True) -> Case:
    x, w = array(m, k, dtype=BF16), array(k // 2, n, dtype=INT8)
    scale, out = array(n, dtype=F32), array(m, n, dtype=BF16)

    def plain(x: Any, w: Any, scale: Any) -> Any:
        return (dot(x, jnp.concatenate(unpacked(w))) * scale).astype(BF16)

    def by_hand(rows: int, columns: int) -> Function:
        """All of the inner dimension in a step: the halves of `x` go with those of the bytes."""

        def product(x: Any, w: Any) -> Any:
            low, high = unpacked(w)
            return dot(x[:, : k // 2], low) + dot(x[:, k // 2 :], high)

        return tiled(rows, columns, k, product, out)

    return Case(
        name=f"int4 matmul {m}x{n}x{k}",
        arguments=[x, w, scale],
        launches={
            "matmul": Launch(
                file="matmul.py",
                kernel="int4_matmul",
                arrays={
                    "x_ptr": text_of(x),
                    "w_ptr": text_of(w),
                    "scale_ptr": text_of(scale),
                    "out_ptr": text_of(out),
                },
                scalars={"M": m, "N": n, "K": k},
                constants={"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 64},
                grid=(m // 128, n // 128),
            )
        },
        emitted=one("matmul", ["out_ptr"], ["x_ptr", "w_ptr", "scale_ptr"]),
        by_hand={
            f"{rows}x{columns}": by_hand(rows, columns)
            for rows, columns in dict.fromkeys(
                (min(i, m), min(j, n)) for i, j in ((1024, 256), (512, 512), (1024, 512))
            )
        },
        plain=plain,
        target=TARGET,
        tolerance=1e-2,
        small=int4_case(128, 256, 256, small=False) if small else None,
    )


def grouped_case(tokens: int, n: int, k: int, experts: int, small: bool = True) -> Case:
    """Rows sorted by expert, whole blocks for each, as many for each expert."""
    block = 128
    x, out = array(tokens, k, dtype=BF16), array(tokens, n, dtype=BF16)
    w = array(experts, k, n, dtype=BF16)
    blocks = tokens // block
    of_block = np.repeat(np.arange(experts), blocks // experts).astype(np.int32)
    sizes = np.full(experts, tokens // experts, np.int32)

    def plain(x: Any, w: Any, of_block: Any) -> Any:
        """One batch of products: XLA is told that each expert has as many rows."""
        del of_block
        rows = x.reshape(experts, tokens // experts, k)
        found = jnp.einsum("etk,ekn->etn", rows, w, preferred_element_type=F32)
        return found.reshape(tokens, n).astype(BF16)

    def library(rows: int, columns: int) -> Function:
        def call(x: Any, w: Any, of_block: Any) -> Any:
            del of_block
            tile = (min(rows, tokens // experts), k, min(columns, n))
            return gmm(x, w, jnp.asarray(sizes), preferred_element_type=BF16, tiling=tile)

        return call

    def by_block(rows: int, columns: int) -> Function:
        """A step looks up the expert of its rows."""

        def kernel(of_block: Any, x_ref: Any, w_ref: Any, out_ref: Any) -> None:
            out_ref[...] = dot(x_ref[...], w_ref[...]).astype(out_ref.dtype)

        def call(x: Any, w: Any, of_block: Any) -> Any:
            each = rows // block
            spec = pltpu.PrefetchScalarGridSpec(
                num_scalar_prefetch=1,
                grid=(n // columns, tokens // rows),
                in_specs=[
                    pl.BlockSpec((rows, k), lambda j, i, of_block: (i, 0)),
                    pl.BlockSpec(
                        (None, k, columns), lambda j, i, of_block: (of_block[i * each], 0, j)
                    ),
                ],
                out_specs=pl.BlockSpec((rows, columns), lambda j, i, of_block: (i, j)),
            )
            return pl.pallas_call(
                kernel,
                grid_spec=spec,
                out_shape=out,
                compiler_params=parameters("parallel", "arbitrary", vmem=VMEM),
            )(of_block, x, w)

        return call

    return Case(
        name=f"grouped matmul bf16 {tokens}x{n}x{k}, {experts} experts",
        arguments=[x, w, of_block],
        launches={
            "matmul": Launch(
                file="matmul.py",
                kernel="grouped_matmul",
                arrays={
                    "x_ptr": text_of(x),
                    "w_ptr": text_of(w),
                    "expert_ptr": f"i32[{blocks}]",
                    "out_ptr": text_of(out),
                },
                scalars={"N": n, "K": k},
                constants={"BLOCK_M": block, "BLOCK_N": 128, "BLOCK_K": 64},
                grid=(blocks, n // 128),
            )
        },
        emitted=one("matmul", ["out_ptr"], ["x_ptr", "w_ptr", "expert_ptr"]),
        by_hand={
            "jax gmm 512x512": library(512, 512),
            "jax gmm 512x1024": library(512, 1024),
            f"{tokens // experts}x{min(512, n)}, expert looked up": by_block(
                tokens // experts, min(512, n)
            ),
        },
        plain=plain,
        target=TARGET,
        tolerance=1e-2,
        small=grouped_case(512, 256, 128, 2, small=False) if small else None,
    )


def cases() -> Iterator[Case]:
    yield matmul_case(1024, 1024, 1024)
    yield matmul_case(4096, 4096, 1024)
    yield grouped_case(4096, 4096, 1024, 8)
    yield int8_case(1024, 4096, 4096)
    yield int4_case(1024, 4096, 4096)

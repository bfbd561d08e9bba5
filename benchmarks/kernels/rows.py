"""Kernels along rows: softmax, norms, elementwise functions, a loss."""

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from benchmarks.kernels.case import Case, Function, Launch, Translated, array, one, text_of
from benchmarks.kernels.pallas_calls import MIB, along, parameters

BF16, F32 = jnp.bfloat16, jnp.float32
TARGET = 1.1
EPS = 1e-5
VMEM = 64 * MIB


def power_of_two(columns: int) -> int:
    return 1 << (columns - 1).bit_length()


def softmax(x: Any, axis: int = -1) -> Any:
    numerator = jnp.exp(x - jnp.max(x, axis=axis, keepdims=True))
    return numerator / jnp.sum(numerator, axis=axis, keepdims=True)


def softmax_case(rows: int, columns: int, small: bool = True) -> Case:
    x = array(rows, columns, dtype=F32)
    by_hand: dict[str, Function] = {
        f"{step} rows": along(softmax, min(step, rows), [x], vmem=VMEM) for step in (256, 512, 1024)
    }
    if columns % 128:
        # XLA lays such a matrix out by columns, which this takes as it is.
        turned = along(
            partial(softmax, axis=0),
            min(512, rows),
            [array(columns, rows, dtype=F32)],
            axis=1,
            vmem=VMEM,
        )
        by_hand["512 rows, transposed"] = lambda x: turned(x.T).T
    return Case(
        name=f"softmax f32 {rows}x{columns}",
        arguments=[x],
        launches={
            "softmax": Launch(
                file="rows.py",
                kernel="softmax",
                arrays={"x_ptr": text_of(x), "out_ptr": text_of(x)},
                scalars={"columns": columns},
                constants={"BLOCK": power_of_two(columns)},
                grid=(rows,),
            )
        },
        emitted=one("softmax", ["out_ptr"], ["x_ptr"]),
        by_hand=by_hand,
        plain=jax.nn.softmax,
        target=TARGET,
        small=softmax_case(32, columns, small=False) if small else None,
    )


def normed(x: Any, w: Any, b: Any) -> tuple[Any, Any, Any]:
    mean = jnp.mean(x, axis=-1, keepdims=True)
    centred = x - mean
    rstd = lax.rsqrt(jnp.mean(centred * centred, axis=-1, keepdims=True) + EPS)
    return centred * rstd * w + b, mean, rstd


def layer_norm_case(rows: int, columns: int, small: bool = True) -> Case:
    x, w = array(rows, columns, dtype=F32), array(columns, dtype=F32)
    one_each = array(rows, dtype=F32)

    def plain(x: Any, w: Any, b: Any) -> Any:
        y, mean, rstd = normed(x, w, b)
        return y, mean[:, 0], rstd[:, 0]

    def by_hand(step: int) -> Function:
        def body(x: Any, w: Any, b: Any) -> Any:
            y, mean, rstd = normed(x, w, b)
            return y, mean[:, 0], rstd[:, 0]

        kernel = along(body, step, [x, one_each, one_each], whole=2, vmem=VMEM)
        return lambda x, w, b: kernel(x, w[None, :], b[None, :])

    return Case(
        name=f"layer norm f32 {rows}x{columns}",
        arguments=[x, w, w],
        launches={
            "norm": Launch(
                file="rows.py",
                kernel="layer_norm",
                arrays={
                    "x_ptr": text_of(x),
                    "w_ptr": text_of(w),
                    "b_ptr": text_of(w),
                    "y_ptr": text_of(x),
                    "mean_ptr": text_of(one_each),
                    "rstd_ptr": text_of(one_each),
                },
                scalars={"columns": columns, "eps": EPS},
                constants={"BLOCK": power_of_two(columns)},
                grid=(rows,),
            )
        },
        emitted=one("norm", ["y_ptr", "mean_ptr", "rstd_ptr"], ["x_ptr", "w_ptr", "b_ptr"]),
        by_hand={f"{step} rows": by_hand(min(step, rows)) for step in (512, 1024)},
        plain=plain,
        target=TARGET,
        small=layer_norm_case(256, columns, small=False) if small else None,
    )


def layer_norm_backward_case(rows: int, columns: int, small: bool = True) -> Case:
    x, w = array(rows, columns, dtype=F32), array(columns, dtype=F32)
    one_each = array(rows, dtype=F32)
    programs = rows // 32

    def gradient(x: Any, w: Any, mean: Any, rstd: Any, dy: Any) -> tuple[Any, Any]:
        normal = (x - mean) * rstd
        wdy = w * dy
        along_normal = jnp.mean(normal * wdy, axis=-1, keepdims=True)
        dx = (wdy - (normal * along_normal + jnp.mean(wdy, axis=-1, keepdims=True))) * rstd
        return dx, normal

    def plain(x: Any, w: Any, mean: Any, rstd: Any, dy: Any) -> Any:
        dx, normal = gradient(x, w, mean[:, None], rstd[:, None], dy)
        return dx, jnp.sum(dy * normal, axis=0), jnp.sum(dy, axis=0)

    def by_hand(step: int) -> Function:
        """The gradients of weight and bias stay in vector memory while the rows go by."""

        def kernel(
            x: Any, w: Any, mean: Any, rstd: Any, dy: Any, dx_out: Any, dw_out: Any, db_out: Any
        ) -> None:
            dx, normal = gradient(x[...], w[...], mean[...][:, None], rstd[...][:, None], dy[...])
            dx_out[...] = dx

            @pl.when(pl.program_id(0) == 0)
            def _() -> None:
                dw_out[...] = jnp.zeros_like(dw_out)
                db_out[...] = jnp.zeros_like(db_out)

            dw_out[...] += jnp.sum(dy[...] * normal, axis=0, keepdims=True)
            db_out[...] += jnp.sum(dy[...], axis=0, keepdims=True)

        def call(x: Any, w: Any, mean: Any, rstd: Any, dy: Any) -> Any:
            block = pl.BlockSpec((step, columns), lambda i: (i, 0))
            row = pl.BlockSpec((1, columns), lambda i: (0, 0))
            each = pl.BlockSpec((step,), lambda i: (i,))
            dx, dw, db = pl.pallas_call(
                kernel,
                grid=(rows // step,),
                in_specs=[block, row, each, each, block],
                out_specs=(block, row, row),
                out_shape=(x, *[array(1, columns, dtype=F32)] * 2),
                compiler_params=parameters("arbitrary", vmem=VMEM),
            )(x, w[None, :], mean, rstd, dy)
            return dx, dw[0], db[0]

        return call

    def emitted(kernels: Mapping[str, Translated], interpret: bool) -> Function:
        def call(x: Any, w: Any, mean: Any, rstd: Any, dy: Any) -> Any:
            out = kernels["norm"](
                interpret, x_ptr=x, w_ptr=w, mean_ptr=mean, rstd_ptr=rstd, dy_ptr=dy
            )
            return out["dx_ptr"], jnp.sum(out["dw_ptr"], axis=0), jnp.sum(out["db_ptr"], axis=0)

        return call

    part = f"f32[{programs},{columns}]"
    return Case(
        name=f"layer norm backward f32 {rows}x{columns}",
        arguments=[x, w, one_each, one_each, x],
        launches={
            "norm": Launch(
                file="rows.py",
                kernel="layer_norm_backward",
                arrays={
                    "x_ptr": text_of(x),
                    "w_ptr": text_of(w),
                    "mean_ptr": text_of(one_each),
                    "rstd_ptr": text_of(one_each),
                    "dy_ptr": text_of(x),
                    "dx_ptr": text_of(x),
                    "dw_ptr": part,
                    "db_ptr": part,
                },
                scalars={"columns": columns},
                constants={"ROWS": 32, "BLOCK": power_of_two(columns)},
                grid=(programs,),
            )
        },
        emitted=emitted,
        by_hand={f"{step} rows": by_hand(min(step, rows)) for step in (256, 512, 1024)},
        plain=plain,
        target=TARGET,
        tolerance=1e-4,
        small=layer_norm_backward_case(256, columns, small=False) if small else None,
    )


def rms_norm_case(rows: int, columns: int, small: bool = True) -> Case:
    x, w = array(rows, columns, dtype=BF16), array(columns, dtype=BF16)

    def plain(x: Any, w: Any) -> Any:
        wide = x.astype(F32)
        rstd = lax.rsqrt(jnp.mean(wide * wide, axis=-1, keepdims=True) + EPS)
        return (wide * rstd * w.astype(F32)).astype(BF16)

    def by_hand(step: int) -> Function:
        kernel = along(plain, step, [x], whole=1, vmem=VMEM)
        return lambda x, w: kernel(x, w[None, :])

    return Case(
        name=f"RMS norm bf16 {rows}x{columns}",
        arguments=[x, w],
        launches={
            "norm": Launch(
                file="rows.py",
                kernel="rms_norm",
                arrays={"x_ptr": text_of(x), "w_ptr": text_of(w), "y_ptr": text_of(x)},
                scalars={"columns": columns, "eps": EPS},
                constants={"BLOCK": power_of_two(columns)},
                grid=(rows,),
            )
        },
        emitted=one("norm", ["y_ptr"], ["x_ptr", "w_ptr"]),
        by_hand={f"{step} rows": by_hand(min(step, rows)) for step in (128, 256, 512)},
        plain=plain,
        target=TARGET,
        tolerance=1e-2,
        small=rms_norm_case(32, columns, small=False) if small else None,
    )


def swiglu_case(rows: int, columns: int, small: bool = True) -> Case:
    x = array(rows, columns, dtype=BF16)

    def plain(gate: Any, up: Any) -> Any:
        wide = gate.astype(F32)
        return (wide * jax.nn.sigmoid(wide) * up.astype(F32)).astype(BF16)

    return Case(
        name=f"SwiGLU bf16 {rows}x{columns}",
        arguments=[x, x],
        launches={
            "swiglu": Launch(
                file="rows.py",
                kernel="swiglu",
                arrays={"gate_ptr": text_of(x), "up_ptr": text_of(x), "out_ptr": text_of(x)},
                scalars={"columns": columns},
                constants={"BLOCK": 1024},
                grid=(rows, columns // 1024),
            )
        },
        emitted=one("swiglu", ["out_ptr"], ["gate_ptr", "up_ptr"]),
        by_hand={
            f"{step} rows": along(plain, min(step, rows), [x], vmem=VMEM) for step in (128, 256)
        },
        plain=plain,
        target=TARGET,
        tolerance=1e-2,
        small=swiglu_case(32, 1024, small=False) if small else None,
    )


def rope_case(tokens: int, heads: int, width: int, small: bool = True) -> Case:
    half = width // 2
    x = array(tokens, heads, width, dtype=BF16)
    table = array(tokens, half, dtype=F32)

    def plain(x: Any, cos: Any, sin: Any) -> Any:
        low, high = x[..., :half].astype(F32), x[..., half:].astype(F32)
        cos, sin = cos[:, None, :], sin[:, None, :]
        return jnp.concatenate([low * cos - high * sin, high * cos + low * sin], -1).astype(BF16)

    def by_hand(step: int) -> Function:
        """Heads side by side; a roll by half a head brings each half to the other."""

        def body(x: Any, cos: Any, sin: Any) -> Any:
            wide = x.astype(F32)
            cos = jnp.concatenate([cos, cos], -1)[:, None, :]
            sin = jnp.concatenate([-sin, sin], -1)[:, None, :]
            return wide * cos + pltpu.roll(wide, half, 2) * sin

        return along(body, step, [x], vmem=VMEM)

    return Case(
        name=f"RoPE bf16 {tokens}x{heads}x{width}",
        arguments=[x, table, table],
        launches={
            "rope": Launch(
                file="rows.py",
                kernel="rope",
                arrays={
                    "x_ptr": text_of(x),
                    "cos_ptr": text_of(table),
                    "sin_ptr": text_of(table),
                    "out_ptr": text_of(x),
                },
                constants={"HEADS": heads, "HALF": half},
                grid=(tokens,),
            )
        },
        emitted=one("rope", ["out_ptr"], ["x_ptr", "cos_ptr", "sin_ptr"]),
        by_hand={f"{step} tokens": by_hand(min(step, tokens)) for step in (64, 128, 256)},
        plain=plain,
        target=TARGET,
        tolerance=1e-2,
        small=rope_case(16, heads, width, small=False) if small else None,
    )


def cross_entropy_case(rows: int, columns: int, small: bool = True) -> Case:
    logits, loss = array(rows, columns, dtype=BF16), array(rows, dtype=F32)
    labels = np.random.default_rng(0).integers(0, columns, rows).astype(np.int32)

    def plain(logits: Any, labels: Any) -> Any:
        wide = logits.astype(F32)
        chosen = jnp.take_along_axis(wide, labels[:, None], axis=1)[:, 0]
        return jax.nn.logsumexp(wide, axis=-1) - chosen

    def by_hand(step: int) -> Function:
        """The label's logit is picked out by comparing positions, as the row is there anyway."""

        def body(logits: Any, labels: Any) -> Any:
            wide = logits.astype(F32)
            greatest = jnp.max(wide, axis=-1, keepdims=True)
            total = jnp.sum(jnp.exp(wide - greatest), axis=-1)
            at = lax.broadcasted_iota(jnp.int32, wide.shape, 1) == labels[:, None]
            chosen = jnp.sum(jnp.where(at, wide, 0.0), axis=-1)
            return greatest[:, 0] + jnp.log(total) - chosen

        return along(body, step, [loss], vmem=100 * MIB)

    return Case(
        name=f"cross-entropy bf16 {rows}x{columns}",
        arguments=[logits, labels],
        launches={
            "loss": Launch(
                file="rows.py",
                kernel="cross_entropy",
                arrays={
                    "logits_ptr": text_of(logits),
                    "label_ptr": f"i32[{rows}]",
                    "loss_ptr": text_of(loss),
                },
                scalars={"columns": columns},
                constants={"BLOCK": 4096},
                grid=(rows,),
            )
        },
        emitted=one("loss", ["loss_ptr"], ["logits_ptr", "label_ptr"]),
        by_hand={"128 rows": by_hand(128)},
        plain=plain,
        target=TARGET,
        tolerance=1e-4,
        small=cross_entropy_case(128, 6144, small=False) if small else None,
    )


def cases() -> Iterator[Case]:
    yield softmax_case(4096, 1024)
    yield softmax_case(4096, 781)
    yield layer_norm_case(4096, 1024)
    yield layer_norm_backward_case(4096, 1024)
    yield rms_norm_case(4096, 4096)
    yield rope_case(4096, 32, 128)
    yield swiglu_case(4096, 4096)
    yield cross_entropy_case(4096, 32000)

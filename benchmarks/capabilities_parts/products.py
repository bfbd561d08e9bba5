"""Probes of dots."""

import jax.numpy as jnp
from jax import lax

from .forms import ONLY, Group, Row
from .probe import TYPES, array, rows, values

PRECISIONS = {
    ONLY: None,
    "default": lax.Precision.DEFAULT,
    "high": lax.Precision.HIGH,
    "highest": lax.Precision.HIGHEST,
    "BF16_BF16_F32_X3": lax.DotAlgorithmPreset.BF16_BF16_F32_X3,
    "TF32_TF32_F32": lax.DotAlgorithmPreset.TF32_TF32_F32,
    "F32_F32_F32": lax.DotAlgorithmPreset.F32_F32_F32,
}
PLAIN = (((1,), (0,)), ((), ()))


def product(left, right, out, precision):
    def multiplied(x, y):
        return lax.dot_general(
            x, y, PLAIN, precision=PRECISIONS[precision], preferred_element_type=TYPES[out]
        )

    return values(multiplied, array(TYPES[left], 128, 128), array(TYPES[right], 128, 128))


def product_rows(columns, *combinations):
    return tuple(
        Row(
            f"`{left}` by `{right}` to `{out}`",
            columns,
            lambda precision, types=(left, right, out): product(*types, precision),
        )
        for left, right, out in map(str.split, combinations)
    )


BY_TYPE = Group(
    "Dots by type and precision",
    "(128, 128) by (128, 128), with `preferred_element_type` last. Columns are the `precision`, the"
    " first without.",
    product_rows(tuple(PRECISIONS), "f32 f32 f32", "bf16 bf16 f32")
    + product_rows(
        (ONLY, "highest"),
        *("f32 bf16 f32", "bf16 bf16 bf16", "f16 f16 f32"),
        *("f8e4m3fn f8e4m3fn f32", "f8e5m2 f8e5m2 f32", "f8e4m3fn f8e5m2 f32"),
        *("bf16 f8e4m3fn f32", "bf16 i8 f32"),
    )
    + product_rows(
        (ONLY,),
        *("f8e4m3fn f8e4m3fn bf16", "i8 i8 i32", "u8 u8 i32", "u8 i8 i32", "i4 i4 i32"),
        *("i8 i8 f32", "i8 i4 i32", "bf16 i4 f32", "i16 i16 i32", "i32 i32 i32", "u32 u32 u32"),
    ),
)


def general(dimensions, left, right):
    def build(dtype):
        out = jnp.float32 if jnp.issubdtype(dtype, jnp.floating) else jnp.int32
        return values(
            lambda x, y: lax.dot_general(x, y, dimensions, preferred_element_type=out),
            array(dtype, *left),
            array(dtype, *right),
        )

    return build


FORMS = Group(
    "Forms of dots",
    "`lax.dot_general` to `f32` or `i32`; letters name the dimensions of both operands.",
    rows(
        "f32 bf16 i8",
        {
            "mk,kn: (8, 8) by (8, 8)": general(PLAIN, (8, 8), (8, 8)),
            "mk,kn: (16, 16) by (16, 16)": general(PLAIN, (16, 16), (16, 16)),
            "mk,kn: (100, 200) by (200, 300)": general(PLAIN, (100, 200), (200, 300)),
            "mk,kn: (1, 128) by (128, 128)": general(PLAIN, (1, 128), (128, 128)),
            "mk,kn: (128, 128) by (128, 1)": general(PLAIN, (128, 128), (128, 1)),
            "mk,kn: (128, 1) by (1, 128)": general(PLAIN, (128, 1), (1, 128)),
        },
    )
    + rows(
        "f32 bf16",
        {
            "mk,nk": general((((1,), (1,)), ((), ())), (128, 256), (128, 256)),
            "km,kn": general((((0,), (0,)), ((), ())), (256, 128), (256, 128)),
            "km,nk": general((((0,), (1,)), ((), ())), (256, 128), (128, 256)),
            "mk,k": general((((1,), (0,)), ((), ())), (128, 128), (128,)),
            "k,kn": general((((0,), (0,)), ((), ())), (128,), (128, 128)),
            "k,k": general((((0,), (0,)), ((), ())), (128,), (128,)),
            "m,n": general((((), ()), ((), ())), (128,), (128,)),
            "bmk,bkn": general((((2,), (1,)), ((0,), (0,))), (4, 32, 64), (4, 64, 128)),
            "bmk,bnk": general((((2,), (2,)), ((0,), (0,))), (4, 32, 64), (4, 128, 64)),
            "bkm,bkn": general((((1,), (1,)), ((0,), (0,))), (4, 64, 32), (4, 64, 128)),
            "mbk,nbk": general((((2,), (2,)), ((1,), (1,))), (32, 4, 64), (32, 4, 64)),
            "abmk,abkn": general((((3,), (2,)), ((0, 1), (0, 1))), (2, 2, 32, 64), (2, 2, 64, 128)),
            "amk,kn": general((((2,), (0,)), ((), ())), (4, 32, 64), (64, 128)),
            "mjk,jkn": general((((1, 2), (0, 1)), ((), ())), (32, 4, 64), (4, 64, 128)),
        },
    ),
)

GROUPS = (BY_TYPE, FORMS)

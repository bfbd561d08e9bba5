"""Liger's RMS norm, RoPE, SwiGLU, cross-entropy and fused linear cross-entropy."""

from importlib import import_module

import torch

PACKAGE = "liger-kernel"
CHECKOUT = None
MODULE = "liger_kernel"


def prepare(checkouts):
    """It is installed."""


def load(checkouts):
    """Nothing launches as it is imported."""


def _functional():
    return import_module("liger_kernel.transformers.functional")


def _leaf(*shape, dtype=torch.float32):
    return torch.randn(shape).to(dtype).requires_grad_()


def _backward(result):
    for each in result if isinstance(result, tuple) else (result,):
        each.backward(torch.randn_like(each), retain_graph=True)


def rms_norm(checkouts):
    functional = _functional()
    for dtype, casting, offset in (
        (torch.float32, "llama", 0.0),
        (torch.bfloat16, "llama", 0.0),
        (torch.bfloat16, "gemma", 1.0),
    ):
        x, weight = _leaf(3, 17, 200, dtype=dtype), _leaf(200, dtype=dtype)
        _backward(functional.liger_rms_norm(x, weight, 1e-6, offset, casting))
    # More rows than a GPU has processors, so that programs take several backwards.
    x, weight = _leaf(1, 301, 96, dtype=torch.bfloat16), _leaf(96, dtype=torch.bfloat16)
    _backward(functional.liger_rms_norm(x, weight, 1e-6))


def rope(checkouts):
    for dtype in (torch.float32, torch.bfloat16):
        q, k = _leaf(2, 8, 13, 64, dtype=dtype), _leaf(2, 2, 13, 64, dtype=dtype)
        angles = torch.randn(1, 13, 64)
        cos, sin = torch.cos(angles).to(dtype), torch.sin(angles).to(dtype)
        outs = _functional().liger_rope(q, k, cos, sin)
        torch.autograd.backward(outs, [torch.randn_like(each) for each in outs])


def swiglu(checkouts):
    for dtype in (torch.float32, torch.bfloat16):
        a, b = _leaf(2, 11, 300, dtype=dtype), _leaf(2, 11, 300, dtype=dtype)
        _backward(_functional().liger_swiglu(a, b))


def cross_entropy(checkouts):
    functional = _functional()
    target = torch.randint(0, 1003, (37,))
    target[5] = -100
    functional.liger_cross_entropy(_leaf(37, 1003), target).backward()
    output = functional.liger_cross_entropy(
        _leaf(37, 1003, dtype=torch.bfloat16),
        target,
        label_smoothing=0.1,
        lse_square_scale=1e-4,
        softcap=30.0,
        return_z_loss=True,
    )
    output.loss.backward()
    functional.liger_cross_entropy(
        _leaf(37, 1003), target, weight=torch.rand(1003), reduction="sum"
    ).backward(torch.tensor(0.7))


def fused_linear_cross_entropy(checkouts):
    functional = _functional()
    target = torch.randint(0, 500, (37,))
    target[5] = -100
    for dtype in (torch.float32, torch.bfloat16):
        x, weight, bias = (
            _leaf(37, 64, dtype=dtype),
            _leaf(500, 64, dtype=dtype),
            _leaf(500, dtype=dtype),
        )
        loss = functional.liger_fused_linear_cross_entropy(x, weight, target, bias)
        loss.backward(torch.tensor(0.7))


CASES = {
    "RMS norm": rms_norm,
    "RoPE": rope,
    "SwiGLU": swiglu,
    "cross-entropy": cross_entropy,
    "fused linear cross-entropy": fused_linear_cross_entropy,
}

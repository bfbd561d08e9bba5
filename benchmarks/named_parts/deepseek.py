"""DeepSeek-V3's kernels of quantized inference."""

import torch

from translators.triton.loading import load_file

PACKAGE = "DeepSeek-V3"
CHECKOUT = "DeepSeek-V3"


def prepare(checkouts):
    """The file is loaded as it is called."""


def load(checkouts):
    """Nothing launches as it is imported."""


def _module(checkouts):
    return load_file(checkouts / CHECKOUT / "inference" / "kernel.py")


def quantize(checkouts):
    module = _module(checkouts)
    module.act_quant(torch.randn(3, 17, 384))
    module.act_quant(torch.randn(3, 17, 384).bfloat16(), scale_fmt="ue8m0")


def dequantize(checkouts):
    weights = torch.randn(300, 400).to(torch.float8_e4m3fn)
    _module(checkouts).weight_dequant(weights, torch.rand(3, 4))


def gemm(checkouts):
    a = torch.randn(3, 19, 384).to(torch.float8_e4m3fn)
    b = torch.randn(200, 384).to(torch.float8_e4m3fn)
    _module(checkouts).fp8_gemm(a, torch.rand(3, 19, 3), b, torch.rand(2, 3))


CASES = {"act_quant": quantize, "weight_dequant": dequantize, "fp8_gemm": gemm}

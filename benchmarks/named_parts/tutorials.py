"""The official tutorials of Triton, 01 to 06."""

from functools import partial

import torch

from translators.triton.loading import load_file

PACKAGE = "tutorials"
CHECKOUT = "triton"
FOLDER = "python/tutorials"


def prepare(checkouts):
    """Files are loaded by their paths."""


def load(checkouts):
    """Loads the tutorials, which launch their kernels as they are loaded."""
    for path in sorted((checkouts / CHECKOUT / FOLDER).glob("0[1-6]-*.py")):
        load_file(path)


def _module(checkouts, stem):
    return load_file(checkouts / CHECKOUT / FOLDER / f"{stem}.py")


def vector_add(checkouts):
    _module(checkouts, "01-vector-add").add(torch.rand(5000), torch.rand(5000))


def softmax(checkouts):
    _module(checkouts, "02-fused-softmax").softmax(torch.randn(45, 391))


def matmul(checkouts):
    module = _module(checkouts, "03-matrix-multiplication")
    for activation in ("", "leaky_relu"):
        a = torch.randn(150, 200, dtype=torch.float16)
        b = torch.randn(200, 270, dtype=torch.float16)
        module.matmul(a, b, activation=activation)


def dropout(checkouts):
    module = _module(checkouts, "04-low-memory-dropout")
    x = torch.randn(3001)
    module.dropout(x, x_keep=(torch.rand(3001) > 0.5).to(torch.int32), p=0.5)
    module.seeded_dropout(x, p=0.3, seed=123)


def layer_norm(checkouts):
    module = _module(checkouts, "05-layer-norm")
    # More rows than partial sums, so that some are added to what another program left.
    for dtype, rows, columns in ((torch.float16, 139, 1100), (torch.float32, 151, 700)):
        x = torch.randn(rows, columns, dtype=dtype, requires_grad=True)
        weight = torch.rand(columns, dtype=dtype, requires_grad=True)
        bias = torch.rand(columns, dtype=dtype, requires_grad=True)
        y = module.layer_norm(x, (columns,), weight, bias, 1e-5)
        if dtype == torch.float16:
            y.backward(torch.randn_like(y))


def attention(checkouts, causal, dtype, specialized=False):
    module = _module(checkouts, "06-fused-attention")
    q, k, v = ((torch.randn(2, 3, 256, 64) * 0.5).to(dtype).requires_grad_() for _ in range(3))
    if dtype == torch.float8_e5m2:  # columns of V behind one another, as its test has them
        v = v.detach().permute(0, 1, 3, 2).contiguous().permute(0, 1, 3, 2).requires_grad_()
    out = module.attention(q, k, v, causal, 0.5, specialized)
    if dtype == torch.float16:
        out.backward(torch.randn_like(out))


CASES = {
    "01 vector add": vector_add,
    "02 softmax": softmax,
    "03 matmul": matmul,
    "04 dropout": dropout,
    "05 layer norm": layer_norm,
    "06 attention, causal": partial(attention, causal=True, dtype=torch.float16),
    "06 attention": partial(attention, causal=False, dtype=torch.float16),
    "06 attention, fp8": partial(attention, causal=True, dtype=torch.float8_e5m2, specialized=True),
    "06 attention, pointers": partial(
        attention, causal=True, dtype=torch.float16, specialized=True
    ),
}

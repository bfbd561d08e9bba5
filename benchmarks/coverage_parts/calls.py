"""Tables of calls: expressions over a package's public functions, with small ordinary arguments.

In an expression `f`, `h`, `bf` and `u` make arrays of float32, float16, bfloat16 and of float32 in
[0, 1); `i` and `i32` make integers below their first argument, `b` booleans; `g` asks for gradients
and `backward` computes them. Other names are those that the package's `NAMES` import.
"""

import importlib
import re
import traceback

import torch

from . import calls_fla, calls_flag_gems, calls_liger, calls_mamba

TABLES = {
    "flag-gems": calls_flag_gems,
    "fla-core": calls_fla,
    "liger-kernel": calls_liger,
    "mamba-ssm": calls_mamba,
}


def run_calls(package, limit, only=None):
    """Makes each call of a package's table; gives (call, outcome, reason) of each.

    Args:
      package: which table.
      only: a regular expression that a call must match.
      limit: a context manager that ends what takes too long by raising `TimeoutError`.
    """
    table = TABLES[package]
    names = {**_makers(), "torch": torch}
    missing = {}
    for name, path in table.NAMES.items():
        try:
            names[name] = _named(path)
        except ImportError as error:
            missing[name] = error
    outcomes = [(name, "failed", f"import: {error}") for name, error in missing.items()]
    for call in table.CALLS:
        if only and not re.search(only, call):
            continue
        torch.manual_seed(0)
        try:
            with limit():
                eval(call, dict(names))
        except Exception:  # host code may raise anything, and the next call must be made
            outcomes.append((call, "failed", traceback.format_exc()[-600:]))
        else:
            outcomes.append((call, "passed", ""))
    return outcomes


def _named(path):
    """A module, or what a module defines."""
    try:
        return importlib.import_module(path)
    except ModuleNotFoundError as error:
        module, _, name = path.rpartition(".")
        if error.name != path:
            raise
        found = getattr(importlib.import_module(module), name, None)
        if found is None:
            raise ImportError(f"no `{path}`") from error
        return found


def _makers():
    def floats(dtype):
        return lambda *shape: torch.randn(shape, dtype=dtype)

    def integers(dtype):
        return lambda high, *shape: torch.randint(0, high, shape, dtype=dtype)

    return {
        "f": floats(torch.float32),
        "h": floats(torch.float16),
        "bf": floats(torch.bfloat16),
        "u": lambda *shape: torch.rand(shape),
        "i": integers(torch.int64),
        "i32": integers(torch.int32),
        "b": lambda *shape: torch.rand(shape) > 0.5,
        "g": lambda tensor: tensor.requires_grad_(),
        "backward": _backward,
    }


def _backward(outputs):
    """The gradients of everything that comes out, each weighed by random numbers."""
    outputs = outputs if isinstance(outputs, tuple | list) else (outputs,)
    outputs = [each for each in outputs if isinstance(each, torch.Tensor) and each.requires_grad]
    torch.autograd.backward(outputs, [torch.randn_like(each) for each in outputs])

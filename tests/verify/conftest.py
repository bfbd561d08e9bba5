"""Verification runs graphs in NumPy and emitted functions in JAX; without them nothing is here."""

import os
from importlib.util import find_spec

HERE = ("numpy", "ml_dtypes", "jax", "triton", "hypothesis")
collect_ignore_glob = [] if all(find_spec(name) for name in HERE) else ["test_*.py"]

# What is compared runs on a CPU, whatever else there is.
os.environ.setdefault("JAX_PLATFORMS", "cpu")

"""Kernels are translated and run here; without Triton and JAX there is nothing to test."""

import os
from importlib.util import find_spec

HERE = ("numpy", "ml_dtypes", "jaxlib", "triton", "hypothesis")
collect_ignore_glob = [] if all(find_spec(name) for name in HERE) else ["test_*.py"]

# The oracles are for a CPU, whatever else there is.
os.environ.setdefault("JAX_PLATFORMS", "cpu")

"""A launch as the coverage benchmark keeps it."""

import sys
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
sys.path.insert(0, str(Path(__file__).resolve().parent / "triton"))

import launching  # noqa: E402

from benchmarks.coverage_parts.store import Collected  # noqa: E402

KERNELS = launching.KERNELS
N = 50


def collected(n=N, block=32, package="tests", name="vector_add"):
    """A launch of `vector_add` with what its arrays hold."""
    arguments = [f"{name}=f32[{n}]" for name in ("x_ptr", "y_ptr", "out_ptr")] + [f"n={n}"]
    kernel, launch = launching.explicit(
        "vector_add", arguments, [f"BLOCK={block}"], str(-(-n // block))
    )
    values = np.random.default_rng(0).standard_normal((3, n)).astype(np.float32)
    return Collected(
        package=package,
        module="kernels",
        kernel=name,
        unit="test",
        launch=launch,
        memory={number: row.view(np.uint8) for number, row in enumerate(values)},
        jitted=kernel,
    )

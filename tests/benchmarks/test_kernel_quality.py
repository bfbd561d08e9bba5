"""The comparison of kernels: its columns compute the same, and what it keeps is up to date."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
NEEDED = ("jax", "libtpu", "triton")

pytestmark = pytest.mark.skipif(
    not all(importlib.util.find_spec(name) for name in NEEDED),
    reason="jax and libtpu compile the programs, Triton reads the kernels",
)


def run(*arguments):
    """The script in a process of its own, as libtpu is told at the start where to write."""
    command = [sys.executable, "benchmarks/kernel_quality.py", *arguments]
    found = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    assert found.returncode == 0, found.stderr[-2000:]
    return found.stdout.splitlines()


@pytest.mark.parametrize("name", ["softmax f32 4096x781", "int4 matmul", "RoPE"])
def test_all_columns_compute_the_same(name):
    lines = run("--check", "--only", name)
    assert len(lines) == 1, "\n".join(lines)


def test_what_is_kept_is_what_was_found_and_only_from_the_same_sources(tmp_path):
    path = tmp_path / "kept.json"
    options = ("--only", "softmax f32 4096x1024", "--chip", "v5e", "--columns", "xla")
    first = run(*options, "--keep", str(path))
    kept = json.loads(path.read_text(encoding="utf-8"))
    ((key, timed),) = kept["timed"].items()
    assert key == "XLA: softmax f32 4096x1024, v5e"
    kept["timed"][key]["seconds"] = 2 * timed["seconds"]
    path.write_text(json.dumps(kept), encoding="utf-8")
    assert run(*options, "--keep", str(path)) != first
    kept["fingerprint"] = "of other sources"
    path.write_text(json.dumps(kept), encoding="utf-8")
    assert run(*options, "--keep", str(path)) == first

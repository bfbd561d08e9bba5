"""The command is run in this process; what it translates needs Triton and JAX."""

import os
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import pytest

from translators.cli import main

NEEDED = ("numpy", "ml_dtypes", "jax", "triton")
collect_ignore_glob = [] if all(find_spec(name) for name in NEEDED) else ["test_command_[!u]*.py"]

# What is compared runs on a CPU, whatever else there is.
os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("TRITON_DEFAULT_FP_FUSION", "1")

KERNELS = Path(__file__).parents[1] / "triton" / "kernels.py"


@dataclass(frozen=True)
class Run:
    """What a run of the command left."""

    status: int
    out: str
    err: str


@pytest.fixture
def run(capsys):
    """Runs the command."""

    def call(*arguments):
        capsys.readouterr()
        status = main([str(each) for each in arguments])
        written = capsys.readouterr()
        return Run(status=status, out=written.out, err=written.err)

    return call


@pytest.fixture
def kernels():
    """A file of kernels with host functions."""
    return KERNELS


@pytest.fixture
def write(tmp_path):
    """Writes a file."""

    def call(name, text):
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return path

    return call

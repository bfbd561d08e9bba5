"""Calls are made from JAX programs; without jax or Triton nothing is here."""

import os
from importlib.util import find_spec
from pathlib import Path

import pytest

HERE = ("numpy", "ml_dtypes", "jax", "triton")
collect_ignore_glob = [] if all(find_spec(name) for name in HERE) else ["test_*.py"]

# What is compared runs on a CPU, whatever else there is.
os.environ.setdefault("JAX_PLATFORMS", "cpu")


@pytest.fixture(scope="session")
def kernels():
    """The kernels that the tests translate elsewhere."""
    from translators.triton.loading import load_file

    return load_file(Path(__file__).parents[1] / "triton" / "kernels.py")


@pytest.fixture(scope="session")
def called():
    """Kernels made for calls from JAX."""
    from translators.triton.loading import load_file

    return load_file(Path(__file__).parent / "called_kernels.py")


@pytest.fixture
def translated(monkeypatch):
    """The launches translated since the test began; nothing is known from before."""
    from translators.call import calls, translations

    launches = []
    translate = translations.translate

    def counting(kernel, launch):
        launches.append(launch)
        return translate(kernel, launch)

    monkeypatch.setattr(translations, "translate", counting)
    monkeypatch.setattr(calls, "TRANSLATIONS", translations.Translations())
    return launches

"""Which kernels there are by name, and the calls of host code that launch them."""

import importlib.util
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import torch

from . import deepseek, fla, liger, mamba, tutorials, vllm

MODULES = (tutorials, liger, fla, vllm, deepseek, mamba)
# Tells processes that are started where the checkouts are.
CHECKOUTS = "NAMED_KERNELS_CHECKOUTS"


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """Calls of a package's own host code.

    Attributes:
      module: the module of this folder that makes the calls.
      name: what is called.
    """

    module: ModuleType
    name: str

    @property
    def package(self):
        return self.module.PACKAGE

    def load(self, checkouts):
        """Imports what makes launches of its own as it is imported."""
        self.module.load(checkouts)

    def run(self, checkouts):
        """Makes the calls, on the same tensors each time."""
        torch.manual_seed(0)
        self.module.CASES[self.name](checkouts)


def cases():
    """All of them, package by package."""
    return [Case(module=module, name=name) for module in MODULES for name in module.CASES]


def missing(module, checkouts):
    """Why a package's cases cannot run; empty where they can."""
    if module.CHECKOUT is None:
        found = importlib.util.find_spec(module.MODULE) is not None
        return "" if found else f"`{module.PACKAGE}` is not installed"
    place = checkouts / module.CHECKOUT
    return "" if place.is_dir() else f"there is no checkout `{place}`"


def prepare(checkouts):
    """Makes the packages importable, here and in processes that are started from here."""
    os.environ[CHECKOUTS] = str(checkouts)
    start = str(Path(__file__).parent / "start")
    if start not in sys.path:
        sys.path.append(start)
    for module in MODULES:
        if not missing(module, checkouts):
            module.prepare(checkouts)

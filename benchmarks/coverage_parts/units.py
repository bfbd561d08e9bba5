"""What is run to collect launches: packages' own tests and tutorials, and tables of calls."""

import importlib
import os
import runpy
import signal
import sys
import traceback
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from .calls import TABLES, run_calls

# Where each package's tests lie in a checkout of its repository, and how they are started.
TESTS = {
    "liger-kernel": ("Liger-Kernel", "test/transformers/test_*.py", ()),
    "fla-core": ("flash-linear-attention", "tests/*/test_*.py", ()),
    "flag-gems": ("FlagGems", "tests/test_*.py", ("--mode", "quick")),
    "conch-triton-kernels": ("conch", "tests/*_test.py", ()),
    "attorch": ("attorch", "tests/test_*.py", ()),
    "mamba-ssm": ("mamba", "tests/ops/triton/test_*.py", ()),
}
# Nothing in these launches a kernel that other tests do not.
PASSED_OVER = {"models", "layers", "context_parallel"}
# Imported before a checkout can be found, so that the kernels are those that are installed.
INSTALLED = {
    "liger-kernel": "liger_kernel",
    "fla-core": "fla",
    "flag-gems": "flag_gems",
    "conch-triton-kernels": "conch",
}
TUTORIALS = ("triton", "python/tutorials/[0-9]*.py", ())
PACKAGES = (*TESTS, "tutorials")
TEST_SECONDS = 60
# A test whose parameters multiply to more works on arrays that are too large to run here.
LARGEST_TEST = 10**8


@contextmanager
def time_limit(seconds):
    """Raises `TimeoutError` within it when the time is over."""
    before = signal.signal(signal.SIGALRM, _stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def _stop(*args):
    raise TimeoutError("it takes too long")


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """One run of a process that collects.

    Attributes:
      package: whose kernels it launches.
      kind: `tests`, `script` or `calls`.
      what: the file, or for calls the package again.
    """

    package: str
    kind: str
    what: str


def units(checkouts, packages):
    """Every unit of these packages; of a package that has no checkout only the calls."""
    found = []
    for package in packages:
        if package in TABLES:
            found.append(Unit(package=package, kind="calls", what=package))
        directory, pattern, _ = TESTS.get(package, TUTORIALS)
        kind = "tests" if package in TESTS else "script"
        root = checkouts / directory
        for path in sorted(root.glob(pattern)):
            if not set(path.relative_to(root).parts) & PASSED_OVER:
                found.append(Unit(package=package, kind=kind, what=str(path)))
    return found


def run_unit(unit, checkouts, per_function, call):
    """Runs a unit; gives (test, outcome, reason) for each test or call in it."""
    if unit.package == "flag-gems":
        # It knows Triton up to 3.6, and leaves constants out of a launch for any later one.
        importlib.import_module("flag_gems.utils.libentry").minor_version = 6
    if unit.kind == "tests":
        return run_tests(unit.package, unit.what, checkouts, per_function)
    if unit.kind == "script":
        return run_script(unit.what)
    if unit.package not in INSTALLED:
        sys.path.insert(0, str(checkouts / TESTS[unit.package][0]))
    return run_calls(unit.package, lambda: time_limit(TEST_SECONDS), call)


def run_tests(package, path, checkouts, per_function):
    """Runs a file of tests, the cheapest parametrisations of each test function."""
    import pytest

    directory, _, options = TESTS[package]
    root = checkouts / directory
    if package in INSTALLED:
        importlib.import_module(INSTALLED[package])
    os.chdir(root)
    sys.path.insert(0, str(root))
    selection = _Smallest(per_function)
    pytest.main(
        [
            *("-q", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "--no-header", "--tb=short"),
            *("-W", "ignore", "--rootdir", str(root), "-o", "addopts=", "--color=no"),
            str(path),
            *options,
        ],
        plugins=[selection],
    )
    return selection.outcomes


class _Smallest:
    """Keeps the tests whose parameters multiply to the least, and stops those that take long."""

    def __init__(self, per_function):
        self._per_function = per_function
        self.outcomes = []

    def pytest_collection_modifyitems(self, config, items):
        functions = {}
        for item in items:
            functions.setdefault(item.nodeid.partition("[")[0], []).append(item)
        items[:] = [
            item
            for group in functions.values()
            for item in sorted(group, key=_size)[: self._per_function]
            if _size(item) <= LARGEST_TEST
        ]

    def pytest_runtest_call(self, item):
        signal.signal(signal.SIGALRM, _stop)
        signal.alarm(TEST_SECONDS)

    def pytest_runtest_teardown(self, item):
        signal.alarm(0)

    def pytest_runtest_logreport(self, report):
        if report.when == "call" or report.outcome == "failed":
            reason = "" if report.outcome == "passed" else str(report.longrepr)[-300:]
            self.outcomes.append((report.nodeid, report.outcome, reason))


def _size(item):
    """The product of all integers among a test's parameters."""
    size = 1
    waiting = list(getattr(getattr(item, "callspec", None), "params", {}).values())
    while waiting:
        value = waiting.pop()
        if isinstance(value, tuple | list):
            waiting.extend(value)
        elif isinstance(value, int) and value > 1:
            size *= value
    return size


def run_script(path, seconds=240):
    """Runs a file as a script."""
    sys.argv = [path]
    directory = str(Path(path).parent)
    sys.path.insert(0, directory)
    os.chdir(directory)
    try:
        with time_limit(seconds):
            runpy.run_path(path, run_name="__main__")
    except Exception:  # host code may raise anything, and what it launched before counts
        return [(path, "failed", traceback.format_exc()[-300:])]
    return [(path, "passed", "")]

"""Collects the launches of a case into a store of its own."""

import json
import re
import shutil
from unittest import mock

from benchmarks.coverage_parts import store
from benchmarks.coverage_parts.collecting import Collector

from .cases import cases, prepare

# Kinds of launches kept of each kernel of a case.
VARIANTS = 12


def collect(package, name, checkouts, cache, run_seconds):
    """Runs a case, and keeps what it launches."""
    (case,) = (each for each in cases() if (each.package, each.name) == (package, name))
    folder = _folder(cache, case)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    prepare(checkouts)
    case.load(checkouts)
    collector = Collector(store.Store(folder), package, name, run_seconds, _log(folder))
    with mock.patch.object(store, "VARIANTS", VARIANTS), collector.collecting():
        case.run(checkouts)
    (folder / "complete").touch()


def is_collected(cache, case):
    return (_folder(cache, case) / "complete").is_file()


def launches(cache, case, variants):
    """(path, what is known of it) of each kind of launch, in the order in which they were kept.

    Args:
      cache: where launches are kept.
      case: whose.
      variants: how many of each kernel.
    """
    folder = _folder(cache, case)
    times = {}
    if _log(folder).is_file():
        for line in _log(folder).read_text(encoding="utf-8").splitlines():
            name = json.loads(line)["kernel"]
            times[name] = times.get(name, 0) + 1
    paths = sorted(store.Store(folder).paths(), key=lambda path: path.stat().st_mtime_ns)
    taken = {}
    for path in paths:
        known = store.header(path)
        name = f"{known['module']}.{known['kernel']}"
        known["launches"] = times[name]
        taken[name] = taken.get(name, 0) + 1
        if taken[name] <= variants:
            yield path, known


def _folder(cache, case):
    return cache / re.sub(r"\W+", "_", f"{case.package} {case.name}")


def _log(folder):
    return folder / "launches.jsonl"

"""How good the emitted Pallas kernels are: against Pallas by hand and XLA's own, with no TPU.

    python benchmarks/kernel_quality.py [--only NAME] [--chip v5e] [--columns ours,hand,xla]
                                        [--keep FILE] [--check]

Three columns, compiled ahead of time for each chip: Triton kernels (`benchmarks/kernels/triton`)
translated to Pallas, or to JAX where that cannot be; Pallas written by hand (jax's own kernels,
tokamax's where it is installed, and those of `benchmarks/kernels`), the best of several block
sizes; plain JAX, which XLA compiles. Seconds are those of the model in docs/kernel-model.md: they
are modelled, not measured.

First each is run at a small size on a CPU, Pallas in its interpreter, and compared with plain JAX;
with --check that is all.

The ratio is to the best of the other two. Where it is above the target it is marked. What is by
hand and XLA's own is looked up in FILE, where that has it from the same sources, jax and libtpu.
"""

import argparse
import dataclasses
import hashlib
import importlib.util
import json
import math
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks import kernel_model  # noqa: E402, I001  (before jax)

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
from jax.experimental.pallas import tpu as pltpu  # noqa: E402

from benchmarks.kernels import attentions, matmuls, rows  # noqa: E402
from benchmarks.kernels.case import Case, Function, Translated, translated  # noqa: E402
from benchmarks.schedules.text import ScheduleError  # noqa: E402
from hlo_tools.errors import InputError  # noqa: E402


@dataclass(frozen=True, slots=True)
class Timed:
    """The best of some programs: which, and what the model says of it.

    Attributes:
      name: which it is.
      seconds: infinite where none compiles.
      bound: what takes longer, `compute` or `memory`.
      failures: the programs that do not compile or cannot be modelled, and why.
    """

    name: str
    seconds: float
    bound: str
    failures: tuple[str, ...]

    @property
    def known(self) -> bool:
        return self.seconds < math.inf


@dataclass(slots=True)
class Kept:
    """What earlier runs found of the columns that no change to the translator changes."""

    path: Path | None
    found: dict[str, Any]

    @classmethod
    def read(cls, path: Path | None) -> "Kept":
        """What a file has from the same sources and compilers; nothing without a file."""
        fingerprint = sources()
        if path is not None and path.exists():
            stored = json.loads(path.read_text(encoding="utf-8"))
            if stored["fingerprint"] == fingerprint:
                return cls(path, stored)
        return cls(path, {"fingerprint": fingerprint, "timed": {}})

    def timed(self, column: str, programs: Mapping[str, Function], case: Case, chip: str) -> Timed:
        """The best of a column, from the file or anew."""
        key = f"{column}: {case.name}, {chip}"
        if key not in self.found["timed"]:
            best_one = best(programs, case, chip)
            self.found["timed"][key] = dataclasses.asdict(best_one)
            if self.path is not None:
                self.path.write_text(json.dumps(self.found, indent=1), encoding="utf-8")
        stored = self.found["timed"][key]
        return Timed(**{**stored, "failures": tuple(stored["failures"])})


def sources() -> str:
    """A fingerprint of what the columns by hand and of XLA depend on."""
    here = ROOT / "benchmarks"
    files = [*here.glob("kernels/*.py"), *here.glob("schedules/*.py"), here / "kernel_model.py"]
    digest = hashlib.sha256()
    for path in sorted(files):
        digest.update(path.read_bytes())
    for package in ("jax", "libtpu", "tokamax"):
        if importlib.util.find_spec(package):
            digest.update(f"{package} {version(package)}".encode())
    return digest.hexdigest()


def values_of(case: Case) -> list[Any]:
    """Numbers for a case's arrays."""
    rng = np.random.default_rng(0)
    found = []
    for each in case.arguments:
        if isinstance(each, np.ndarray):
            found.append(jnp.asarray(each))
        elif jnp.issubdtype(each.dtype, jnp.integer):
            found.append(jnp.asarray(rng.integers(-128, 128, each.shape), each.dtype))
        else:
            found.append(jnp.asarray(rng.standard_normal(each.shape), each.dtype))
    return found


def difference(got: Any, wanted: Any) -> float:
    """The largest difference, as a share of the largest element; over all results."""
    pairs = zip(jax.tree.leaves(got), jax.tree.leaves(wanted), strict=True)
    shares = []
    for each, other in pairs:
        each, other = (np.asarray(part, np.float64) for part in (each, other))
        shares.append(np.max(np.abs(each - other)) / np.max(np.abs(other)))
    return float(max(shares))


def kernels_of(case: Case, emit: str) -> dict[str, Translated]:
    return {name: translated(launch, emit) for name, launch in case.launches.items()}


def checked(case: Case, columns: set[str]) -> Iterator[str]:
    """Runs the small size of a case, and says what is too far from plain JAX."""
    small = case.small or case
    values = values_of(small)
    wanted = jax.jit(small.plain)(*values)

    def compare(name: str, function: Function, interpreter: bool) -> Iterator[str]:
        try:
            if interpreter:
                with pltpu.force_tpu_interpret_mode():
                    got = function(*values)
            else:
                got = function(*values)
        except Exception as error:  # whatever a library's kernel raises where it cannot run
            yield f"  {name}: does not run: {brief(error)}"
            return
        apart = difference(got, wanted)
        if not apart <= small.tolerance:
            yield f"  {name}: DIFFERS by {apart:.2g}"

    if "ours" in columns:
        try:
            kernels = kernels_of(small, "auto")
        except InputError as error:
            yield f"  ours: refused: {error}"
        else:
            yield from compare("ours", small.emitted(kernels, True), False)
    if "hand" in columns:
        for name, function in small.by_hand.items():
            yield from compare(f"by hand, {name}", function, True)


def brief(error: Exception) -> str:
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text[:160]}"


def best(programs: Mapping[str, Function], case: Case, generation: str) -> Timed:
    """The fastest of some programs, by the model."""
    found: tuple[str, float, str] = "", math.inf, ""
    failures = []
    for name, function in programs.items():
        try:
            modelled = kernel_model.model(function, case.arguments, generation)
        except Exception as error:  # whatever libtpu, jax or the reader of schedules raise
            failures.append(f"{name}: {brief(error)}")
            continue
        if modelled.seconds < found[1]:
            found = name, modelled.seconds, modelled.bound
    return Timed(*found, tuple(failures))


def ours(case: Case, generation: str) -> Timed:
    """The translation: in Pallas where that can be and compiles, otherwise in JAX."""
    failures: tuple[str, ...] = ()
    for emit in ("auto", "jax"):
        try:
            kernels = kernels_of(case, emit)
        except InputError as error:
            return Timed("refused", math.inf, "", (str(error),))
        why = tuple(each.why for each in kernels.values() if each.why)
        count = sum(each.pallas for each in kernels.values())
        name = {len(kernels): "Pallas", 0: "JAX"}.get(count, "partly JAX")
        function = case.emitted(kernels, False)
        try:
            modelled = kernel_model.model(function, case.arguments, generation)
        except ScheduleError as error:
            return Timed(f"{name}?", math.inf, "", (*failures, *why, brief(error)))
        except Exception as error:  # whatever jax and libtpu raise of what does not compile
            failures += (f"{name}: {brief(error)}",)
            continue
        return Timed(name, modelled.seconds, modelled.bound, (*failures, *why))
    return Timed("fails", math.inf, "", failures)


def microseconds(timed: Timed | None) -> str:
    return f"{1e6 * timed.seconds:9.1f}" if timed and timed.known else f"{'-':>9}"


def lines(case: Case, generations: list[str], columns: set[str], kept: Kept) -> Iterator[str]:
    yield from checked(case, columns)
    for generation in generations:
        start = time.perf_counter()
        own = ours(case, generation) if "ours" in columns else None
        hand = kept.timed("by hand", case.by_hand, case, generation) if "hand" in columns else None
        xla = kept.timed("XLA", {"XLA": case.plain}, case, generation) if "xla" in columns else None
        others = min((each.seconds for each in (hand, xla) if each), default=math.inf)
        ratio, mark = "", ""
        if own and own.known and others < math.inf:
            ratio = f"{own.seconds / others:7.2f}"
            mark = " MISSES" if own.seconds / others > case.target else ""
        yield (
            f"{case.name:58} {generation:4} {microseconds(own)} {own.name if own else '':10}"
            f" {own.bound if own else '':8}{microseconds(hand)} {hand.name if hand else '':36}"
            f"{microseconds(xla)}{ratio:>8} {case.target:4}{mark}"
        )
        for timed in (own, hand, xla):
            for failure in timed.failures if timed else ():
                yield f"    {failure}"
        print(f"{case.name} {generation}: {time.perf_counter() - start:.0f} s", file=sys.stderr)


def all_cases() -> list[Case]:
    return [*matmuls.cases(), *rows.cases(), *attentions.cases()]


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--only", default="", help="a part of the names of what is compared")
    options.add_argument("--chip", action="append", choices=kernel_model.TOPOLOGIES)
    options.add_argument("--columns", default="ours,hand,xla")
    options.add_argument("--keep", type=Path, help="where to keep what the others take")
    options.add_argument("--check", action="store_true", help="only compare numbers")
    chosen = options.parse_args()
    columns = set(chosen.columns.split(","))
    if chosen.check:
        for case in all_cases():
            if chosen.only in case.name:
                print(case.name, *checked(case, columns), sep="\n", flush=True)
        return
    generations = chosen.chip or list(kernel_model.TOPOLOGIES)
    print(
        f"{'microseconds, modelled':58} {'':4} {'emitted':>9} {'':10} {'bound by':8}"
        f"{'by hand':>9} {'':36}{'XLA':>9}{'ratio':>8} goal"
    )
    kept = Kept.read(chosen.keep)
    for case in all_cases():
        if chosen.only in case.name:
            for line in lines(case, generations, columns, kept):
                print(line, flush=True)


if __name__ == "__main__":
    main()

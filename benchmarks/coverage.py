"""How many kernels of real packages the translator takes, proved equal, and why not the others.

    python benchmarks/coverage.py --cache DIR --collect --checkouts DIR
    python benchmarks/coverage.py --cache DIR [--package P] [--only REGEX] [--jobs N] [--debug]

The first command runs the packages' own host code on CPU tensors (their tests and tutorials, from
checkouts of their repositories, and tables of calls) and keeps what it launches with the contents
of every array. It needs torch and the packages; each unit runs in a process of its own. Checkouts
are `Liger-Kernel`, `flash-linear-attention`, `FlagGems`, `conch`, `attorch`, `mamba` and `triton`;
kernels of packages that are installed are taken from there, not from a checkout. The second command
translates each launch, runs the JAX function that comes out against the graph's evaluator, and
compiles it for a TPU.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import time
import warnings
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# The directory of this file, which Python puts first, would hide a package called `coverage`.
sys.path[0] = str(ROOT)

UNIT_SECONDS = 900
REWRITE_SECONDS = 30


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--cache", type=Path, required=True, help="where launches are kept")
    options.add_argument("--package", action="append", help="this one only; may be repeated")
    options.add_argument("--only", help="a regular expression that a launch's file must match")
    options.add_argument("--collect", action="store_true", help="run host code, keep its launches")
    options.add_argument("--checkouts", type=Path, help="where the packages' repositories are")
    options.add_argument("--per-function", type=int, default=1, help="cases of each test function")
    options.add_argument("--call", help="a regular expression that a call must match")
    options.add_argument("--run-seconds", type=float, default=5.0, help="time to run a launch in")
    options.add_argument("--jobs", type=int, default=2)
    options.add_argument("--seconds", type=float, default=60.0, help="processor time for a launch")
    options.add_argument("--variants", type=int, default=3, help="launches of each kernel")
    options.add_argument("--no-tpu", action="store_true", help="do not compile")
    options.add_argument("--format", choices=("text", "json"), default="text")
    options.add_argument("--failures", type=Path, help="write what failed there, by cause")
    options.add_argument("--results", type=Path, help="keep outcomes there, over several runs")
    options.add_argument("--unfinished", action="store_true", help="not what is verified there")
    options.add_argument("--debug", action="store_true", help="in this process, with the source")
    options.add_argument("--unit", nargs=3, help=argparse.SUPPRESS)
    options.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    chosen = options.parse_args()
    if (chosen.collect or chosen.unit) and not chosen.checkouts:
        options.error("--collect needs --checkouts")
    if chosen.unfinished and not chosen.results:
        options.error("--unfinished needs --results")
    os.environ.setdefault("GEMS_VENDOR", "nvidia")  # FlagGems asks what it runs on
    os.environ.setdefault("FLAGGEMS_CACHE_DIR", str(chosen.cache.resolve() / "generated"))
    os.environ.setdefault("TORCHDYNAMO_DISABLE", "1")
    warnings.simplefilter("ignore")
    if chosen.unit:
        collect_unit(chosen)
    elif chosen.collect:
        collect(chosen)
    elif chosen.worker:
        from benchmarks.coverage_parts.pool import serve

        serve({"tpu": not chosen.no_tpu, "verify_seconds": chosen.seconds})
    elif chosen.debug:
        debug(chosen)
    else:
        attempt(chosen)


def collect(chosen):
    """Each unit in a process of its own, so that none can spoil another."""
    from benchmarks.coverage_parts import units

    for unit in units.units(chosen.checkouts, chosen.package or units.PACKAGES):
        if chosen.only and not re.search(chosen.only, unit.what):
            continue
        start = time.perf_counter()
        command = [sys.executable, __file__, "--cache", str(chosen.cache)]
        command += ["--unit", unit.package, unit.kind, unit.what]
        command += ["--checkouts", str(chosen.checkouts)]
        command += ["--per-function", str(chosen.per_function)]
        command += ["--run-seconds", str(chosen.run_seconds)]
        command += ["--call", chosen.call] if chosen.call else []
        log = chosen.cache / "logs" / f"{unit.package}.{Path(unit.what).stem}.txt"
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("w") as output:
            try:
                code = subprocess.run(
                    command, stdout=output, stderr=subprocess.STDOUT, timeout=UNIT_SECONDS
                ).returncode
            except subprocess.TimeoutExpired:
                code = "out of time"
        seconds = time.perf_counter() - start
        print(f"{seconds:6.1f} s  {code}  {unit.package} {unit.what}", flush=True)


def collect_unit(chosen):
    from benchmarks.coverage_parts import collecting, units
    from benchmarks.coverage_parts.store import Store

    package, kind, what = chosen.unit
    unit = units.Unit(package=package, kind=kind, what=what)
    cache = chosen.cache.resolve()
    log = cache / "launches.jsonl"
    checkouts = chosen.checkouts.resolve()
    collector = collecting.Collector(Store(cache), package, what, chosen.run_seconds, log)
    with collector.collecting():
        outcomes = units.run_unit(unit, checkouts, chosen.per_function, chosen.call)
    with (cache / "outcomes.jsonl").open("a", encoding="utf-8") as file:
        for outcome in outcomes:
            file.write(json.dumps((package, what, *outcome)) + "\n")


def chosen_launches(chosen):
    """The stored launches asked for with what is known of each: those that cost least, first."""
    from benchmarks.coverage_parts.store import Store, header

    kernels = {}
    for path in Store(chosen.cache).paths():
        known = header(path)
        if chosen.package and known["package"] not in chosen.package:
            continue
        if chosen.only and not re.search(chosen.only, path.name):
            continue
        name = f"{known['module']}.{known['kernel']}"
        kernels.setdefault((known["package"], name), []).append((known["cost"], path, known))
    found = [
        (cost, path, {"package": package, "name": name, "file": path.name})
        for (package, name), launches in kernels.items()
        for cost, path, _ in sorted(launches, key=lambda each: each[0])[: chosen.variants]
    ]
    return {path: known for _, path, known in sorted(found, key=lambda each: each[0])}


def attempt(chosen):
    from benchmarks.coverage_parts import report
    from benchmarks.coverage_parts.pool import Pool

    launches = chosen_launches(chosen)
    known = known_outcomes(chosen.results)
    if chosen.unfinished:
        wanted = not chosen.no_tpu
        finished = {path for path in launches if settled(known.get(path.name), wanted)}
    else:
        finished = set()
    waiting = [path for path in launches if path not in finished]
    command = [sys.executable, __file__, "--cache", str(chosen.cache), "--worker"]
    command += ["--seconds", str(chosen.seconds), *(["--no-tpu"] if chosen.no_tpu else [])]
    written = time.monotonic()
    for path, outcome in Pool(command, chosen.jobs, chosen.seconds).run(waiting):
        if not path.is_file():
            continue  # collected anew in the meantime
        known[path.name] = {**launches[path], **outcome}
        if chosen.results:
            with chosen.results.open("a", encoding="utf-8") as file:
                file.write(json.dumps(known[path.name]) + "\n")
        if chosen.format == "text":
            print(report.line(known[path.name]), flush=True)
        if chosen.failures and time.monotonic() > written + REWRITE_SECONDS:
            write_failures(chosen, launches, known)
            written = time.monotonic()
    rows = [known[path.name] for path in launches if path.name in known]
    if chosen.format == "json":
        print(json.dumps(rows, indent=1))
    else:
        print(f"\n{report.table(rows)}")
    if chosen.failures:
        write_failures(chosen, launches, known)


def write_failures(chosen, launches, known):
    from benchmarks.coverage_parts import report

    rows = [known[path.name] for path in launches if path.name in known]
    command = f"python benchmarks/coverage.py --cache {chosen.cache} --debug"
    text = f"{report.table(rows)}\n\n{report.causes(rows, command)}"
    chosen.failures.write_text(text, encoding="utf-8")


def known_outcomes(results):
    """The last outcome of each launch that earlier runs kept, by its file."""
    if results is None or not results.is_file():
        return {}
    with results.open(encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    return {row["file"]: row for row in rows}


def settled(row, tpu):
    """Whether an outcome is as good as it can be, with or without that for a TPU."""
    return row is not None and row["result"] == "verified" and (row["tpu"] == "yes" or not tpu)


def debug(chosen):
    """Prints the emitted source of each launch, and the traceback of whatever is raised."""
    from benchmarks.coverage_parts import report
    from benchmarks.coverage_parts.attempt import Attempt
    from benchmarks.coverage_parts.pretence import pretended_gpu
    from benchmarks.coverage_parts.tpu import use_environment

    use_environment()
    attempts = Attempt(
        lambda step, outcome: print(f"--- {step}", flush=True),
        tpu=not chosen.no_tpu,
        verify_seconds=chosen.seconds,
        debug=True,
    )
    with pretended_gpu():
        for path, known in chosen_launches(chosen).items():
            outcome = attempts.run(path).as_dict()
            print(outcome["launch"], outcome["trace"], report.line({**known, **outcome}), sep="\n")


if __name__ == "__main__":
    main()

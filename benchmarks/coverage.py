"""How many kernels of real packages the translator takes, proved equal, and why not the others.

    python benchmarks/coverage.py --cache DIR --collect --checkouts DIR
    python benchmarks/coverage.py --cache DIR [--columns jax|pallas] [--package P] [--only REGEX]
                                  [--every N] [--jobs N] [--results FILE [--resume]] [--debug]

The first command runs the packages' own host code on CPU tensors (their tests and tutorials, from
checkouts of their repositories, and tables of calls) and keeps what it launches with the contents
of every array. It needs torch and the packages; each unit runs in a process of its own. Checkouts
are `Liger-Kernel`, `flash-linear-attention`, `FlagGems`, `conch`, `attorch`, `mamba` and `triton`;
kernels of packages that are installed are taken from there, not from a checkout. The second command
translates each launch, runs what comes out against the graph's evaluator, and compiles it for TPUs:
as JAX, and as a Pallas kernel, in two groups of columns.
"""

import argparse
import json
import os
import re
import resource
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# The directory of this file, which Python puts first, would hide a package called `coverage`.
sys.path[0] = str(ROOT)

COLUMNS = ("jax", "pallas")
CHIPS = ("v5e", "v6e")
UNIT_SECONDS = 900
UNIT_BYTES = 12 << 30
REWRITE_SECONDS = 30
# How much processor time a launch may take in all, of what its verification may take by the clock.
POOL_FACTOR = 2


def main():
    from translators.verify.generations import TOPOLOGIES

    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--cache", type=Path, required=True, help="where launches are kept")
    options.add_argument("--package", action="append", help="this one only; may be repeated")
    options.add_argument("--only", help="a regular expression that a launch's file must match")
    options.add_argument("--collect", action="store_true", help="run host code, keep its launches")
    options.add_argument("--checkouts", type=Path, help="where the packages' repositories are")
    options.add_argument("--per-function", type=int, default=1, help="cases of each test function")
    options.add_argument("--call", help="a regular expression that a call must match")
    options.add_argument("--run-seconds", type=float, default=5.0, help="time to run a launch in")
    options.add_argument(
        "--columns", action="append", choices=COLUMNS, help="these only; may be repeated"
    )
    options.add_argument("--jobs", type=int, default=2)
    options.add_argument("--seconds", type=float, default=60.0, help="to verify a launch in")
    options.add_argument("--variants", type=int, default=3, help="launches of each kernel")
    options.add_argument("--every", type=int, default=1, help="one kernel in so many")
    options.add_argument(
        "--chip",
        action="append",
        choices=tuple(TOPOLOGIES),
        help=f"compile Pallas kernels for it; may be repeated (default: {', '.join(CHIPS)})",
    )
    options.add_argument("--no-tpu", action="store_true", help="do not compile")
    options.add_argument("--format", choices=("text", "json"), default="text")
    options.add_argument("--failures", type=Path, help="write what failed there, by cause")
    options.add_argument("--results", type=Path, help="keep outcomes there, over several runs")
    options.add_argument("--resume", action="store_true", help="not what has an outcome there")
    options.add_argument("--unfinished", action="store_true", help="not what is verified there")
    options.add_argument("--debug", action="store_true", help="in this process, with the source")
    options.add_argument("--unit", nargs=3, help=argparse.SUPPRESS)
    options.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    chosen = options.parse_args()
    if (chosen.collect or chosen.unit) and not chosen.checkouts:
        options.error("--collect needs --checkouts")
    if (chosen.unfinished or chosen.resume) and not chosen.results:
        options.error("--resume and --unfinished need --results")
    chosen.columns = chosen.columns or list(COLUMNS)
    chosen.chip = chosen.chip or list(CHIPS)
    os.environ.setdefault("GEMS_VENDOR", "nvidia")  # FlagGems asks what it runs on
    os.environ.setdefault("FLAGGEMS_CACHE_DIR", str(chosen.cache.resolve() / "generated"))
    os.environ.setdefault("TORCHDYNAMO_DISABLE", "1")
    warnings.simplefilter("ignore")
    if chosen.unit:
        collect_unit(chosen)
    elif chosen.collect:
        collect(chosen)
    elif chosen.worker:
        from benchmarks.coverage_parts.serving import serve

        serve(chosen.columns, **attempt_options(chosen))
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

    # Some tests make arrays that are larger than the memory of many machines.
    resource.setrlimit(resource.RLIMIT_AS, (UNIT_BYTES, UNIT_BYTES))
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


def attempt_options(chosen):
    return {"tpu": not chosen.no_tpu, "chips": tuple(chosen.chip), "seconds": chosen.seconds}


def launches_of(chosen):
    from benchmarks.coverage_parts.selection import chosen_launches

    return chosen_launches(
        chosen.cache,
        packages=chosen.package,
        only=chosen.only,
        variants=chosen.variants,
        every=chosen.every,
    )


def attempt(chosen):
    from benchmarks.coverage_parts.pool import Pool
    from benchmarks.coverage_parts.reports import line, tables
    from benchmarks.coverage_parts.results import Results
    from benchmarks.coverage_parts.serving import Job, lost_outcome

    # Workers are sessions of their own, which end with this process only if it ends in order.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended"))
    launches = launches_of(chosen)
    files = [path.name for path in launches]
    results = Results(chosen.results)
    waiting = [
        Job(column, path)
        for path in launches
        for column in chosen.columns
        if not done(chosen, results.of(path.name, column))
    ]
    command = [sys.executable, __file__, "--cache", str(chosen.cache), "--worker"]
    command += ["--seconds", str(chosen.seconds), *(["--no-tpu"] if chosen.no_tpu else [])]
    command += [part for each in chosen.columns for part in ("--columns", each)]
    command += [part for each in chosen.chip for part in ("--chip", each)]
    written = time.monotonic()
    pool = Pool(command, chosen.jobs, POOL_FACTOR * chosen.seconds, lost_outcome)
    for job, outcome in pool.run(waiting):
        if not job.path.is_file():
            continue  # collected anew in the meantime
        known = launches[job.path]
        results.add(known, job.column, outcome)
        if chosen.format == "text":
            print(line(job.column, {**known, **outcome}), flush=True)
        if chosen.failures and time.monotonic() > written + REWRITE_SECONDS:
            write_failures(chosen, results.rows(files))
            written = time.monotonic()
    rows = results.rows(files)
    if chosen.format == "json":
        print(json.dumps(rows, indent=1))
    else:
        print(f"\n{tables(rows, chosen.columns)}")
    if chosen.failures:
        write_failures(chosen, rows)


def done(chosen, outcome):
    """Whether a launch with this outcome in a column need not be attempted again."""
    if outcome is None or not (chosen.resume or chosen.unfinished):
        return False
    if chosen.resume:
        return True
    return outcome["result"] == "verified" and (chosen.no_tpu or outcome.get("tpu", "yes") == "yes")


def write_failures(chosen, rows):
    from benchmarks.coverage_parts.reports import failures

    command = f"python benchmarks/coverage.py --cache {chosen.cache} --debug"
    text = failures(rows, chosen.columns, command)
    chosen.failures.write_text(text, encoding="utf-8")


def debug(chosen):
    """Prints the emitted source of each launch, and the traceback of whatever is raised."""
    from benchmarks.coverage_parts.columns import attempts
    from benchmarks.coverage_parts.pretence import pretended_gpu
    from benchmarks.coverage_parts.reports import line
    from benchmarks.coverage_parts.tpu import use_environment

    use_environment()

    def announce(step, outcome):
        print(f"--- {step}", flush=True)

    options = attempt_options(chosen)
    with attempts(chosen.columns, announce, **options, debug=True) as made, pretended_gpu():
        for path, known in launches_of(chosen).items():
            for column, each in made.items():
                outcome = each.run(path).as_dict()
                print(outcome["launch"], outcome["trace"], sep="\n")
                print(line(column, {**known, **outcome}))


if __name__ == "__main__":
    main()

"""Real kernels by name, whole, through the translator: one row for each.

    python benchmarks/named_kernels.py --checkouts DIR --cache DIR [--only REGEX] [--emit jax]

The kernels are those of Triton's tutorials 01 to 06, of Liger's RMS norm, RoPE, SwiGLU and
cross-entropies, of flash-linear-attention's gated delta rule, of vLLM's fused MoE and unified
attention, of DeepSeek-V3's quantized inference and of Mamba-2's chunk scan and chunk state. The
packages' own host code launches them, on CPU tensors of small sizes; Liger and
flash-linear-attention are those that are installed, the others are found in checkouts named
`triton`, `vllm`, `DeepSeek-V3` and `mamba`. What is missing is said. The launches are kept in the
cache, with the contents of their arrays, and collected anew with `--collect`. Each is translated to
Pallas, or where that cannot be or the TPU compiler refuses it to JAX, and proved by the rungs of
`triton2pallas`.
"""

import argparse
import json
import re
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[0] = str(ROOT)

CASE_SECONDS = 900


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--checkouts", type=Path, required=True, help="where packages are")
    options.add_argument("--cache", type=Path, required=True, help="where launches are kept")
    options.add_argument("--only", default="", help="a regular expression for `package: case`")
    options.add_argument("--kernel", default="", help="a regular expression for kernels' names")
    options.add_argument("--collect", action="store_true", help="collect launches anew")
    options.add_argument("--run-seconds", type=float, default=20.0, help="to run a launch in")
    options.add_argument("--seconds", type=float, default=120.0, help="to verify a launch in")
    options.add_argument("--emit", choices=("auto", "pallas", "jax"), default="auto")
    options.add_argument("--chip", action="append", default=[], help="to compile for; repeatable")
    options.add_argument("--variants", type=int, default=99, help="launches of a kernel in a case")
    options.add_argument("--jobs", type=int, default=1)
    options.add_argument("--format", choices=("text", "json"), default="text")
    options.add_argument("--keep", type=Path, help="write sources, accesses and traces there")
    options.add_argument(
        "--results", type=Path, help="keep outcomes there; what has one is not run"
    )
    options.add_argument("--case", nargs=2, help=argparse.SUPPRESS)
    options.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    chosen = options.parse_args()
    chosen.checkouts, chosen.cache = chosen.checkouts.resolve(), chosen.cache.resolve()
    if chosen.worker:
        from benchmarks.named_parts.attempt import serve

        settings = {"seconds": chosen.seconds, "chips": tuple(chosen.chip), "hasty": True}
        serve(chosen.checkouts, chosen.emit, settings)
    elif chosen.case:
        from benchmarks.named_parts.collecting import collect

        collect(*chosen.case, chosen.checkouts, chosen.cache, chosen.run_seconds)
    else:
        show(chosen)


def show(chosen):
    from benchmarks.coverage_parts.pool import Pool
    from benchmarks.named_parts import results, rows

    launches, anew = collected(chosen)
    found = results.known(chosen.results)
    waiting = [path for path in launches if str(path) not in found or path in anew]
    command = [*base_command(chosen), "--worker", "--seconds", str(chosen.seconds)]
    command += ["--emit", chosen.emit]
    for chip in chosen.chip:
        command += ["--chip", chip]
    # A launch may be verified twice, and the processes that are asked take time of their own.
    for path, outcome in Pool(command, chosen.jobs, 6 * chosen.seconds).run(waiting):
        result = {"seconds": 0.0, **launches[path], **outcome, "file": str(path)}
        found[str(path)] = result
        results.add(chosen.results, result)
        print(rows.line(result), file=sys.stderr, flush=True)
        if chosen.keep:
            rows.keep(chosen.keep, result)
    made = [found[str(path)] for path in launches]
    print(json.dumps(made, indent=1) if chosen.format == "json" else rows.table(made))


def collected(chosen):
    """The launches that are asked for, with what is known of each; and which were made now."""
    from benchmarks.named_parts import collecting

    launches, anew = {}, set()
    for case in wanted_cases(chosen):
        now = chosen.collect or not collecting.is_collected(chosen.cache, case)
        if now:
            run_case(chosen, case)
        for path, known in collecting.launches(chosen.cache, case, chosen.variants):
            if re.search(chosen.kernel, known["kernel"]):
                launches[path] = known
                anew |= {path} if now else set()
    return launches, anew


def wanted_cases(chosen):
    """The cases that are asked for; of those that cannot run it says why."""
    from benchmarks.named_parts import cases

    said = set()
    for case in cases.cases():
        if not re.search(chosen.only, f"{case.package}: {case.name}"):
            continue
        reason = cases.missing(case.module, chosen.checkouts)
        if not reason:
            yield case
        elif reason not in said:
            said.add(reason)
            print(f"{case.package}: left out, {reason}", file=sys.stderr)


def base_command(chosen):
    command = [sys.executable, __file__, "--checkouts", str(chosen.checkouts)]
    return [*command, "--cache", str(chosen.cache)]


def run_case(chosen, case):
    """Collects the launches of a case in a process of its own."""
    start = time.perf_counter()
    command = [*base_command(chosen), "--case", case.package, case.name]
    command += ["--run-seconds", str(chosen.run_seconds)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=CASE_SECONDS)
    if done.returncode:
        print(f"{case.package}: {case.name} fails\n{done.stderr[-3000:]}", file=sys.stderr)
    seconds = time.perf_counter() - start
    print(f"collected {case.package}: {case.name}, {seconds:.0f} s", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()

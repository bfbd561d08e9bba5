"""How many kernels of a census the front end takes, step by step, and why not the others.

    python benchmarks/front_end_coverage.py CENSUS_DIRECTORY [--table census200.tsv]

A row of the table names a kernel of an installed package, its signature and its constants. Each
is taken to Triton IR, parsed, converted to an op graph and verified. Nothing is run.
"""

import argparse
import ast
import csv
import importlib
import json
import os
import sys
import time
import warnings
from collections import Counter, defaultdict
from pathlib import Path

from hlo_tools.errors import InputError
from translators.graph.verifier import verify
from translators.triton.driver import stand_in_driver
from translators.triton.frontend import triton_ir
from translators.triton.kernels import kernel_source, unwrap
from translators.triton.launches import (
    ArrayArgument,
    ConstantArgument,
    Launch,
    LaunchError,
    ScalarArgument,
    TupleArgument,
    TypeConstant,
    canonical_dtype,
)
from translators.triton.ttir import TtirError, read_ttir

STEPS = ("Triton IR", "parsed", "converted", "verified")


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("census", type=Path)
    options.add_argument("--table", default="census200.tsv")
    chosen = options.parse_args()
    csv.field_size_limit(sys.maxsize)
    with (chosen.census / chosen.table).open(encoding="utf-8", newline="") as table:
        rows = list(csv.DictReader(table, delimiter="\t"))
    # FlagGems asks what it runs on before anything else.
    os.environ.setdefault("GEMS_VENDOR", "nvidia")
    warnings.simplefilter("ignore")
    passed, reasons = Counter(), defaultdict(list)
    seconds = []
    with stand_in_driver():
        for row in rows:
            start = time.perf_counter()
            step, reason = attempt(row)
            seconds.append(time.perf_counter() - start)
            passed.update(STEPS[:step])
            if reason:
                reasons[reason].append(f"{row['module']}.{row['kernel']}")
    print(f"{len(rows)} kernels, {sorted(seconds)[len(rows) // 2]:.3f} s for the median one")
    for step in STEPS:
        print(f"{passed[step]:5} {step}")
    for reason, kernels in sorted(reasons.items(), key=lambda item: -len(item[1])):
        print(f"{len(kernels):5} {reason}: {', '.join(kernels[:3])}")


def attempt(row):
    """How many steps a row passes, and why it goes no further."""
    try:
        kernel = kernel_of(row)
        text = triton_ir(kernel, launch_of(kernel, row))
    except (InputError, ImportError, AttributeError) as error:
        return 0, f"{type(error).__name__}: {getattr(error, 'message', error)}"
    try:
        module = read_ttir(text)
    except TtirError as error:
        return 2, error.message
    except InputError as error:
        return 1, error.message
    try:
        verify(module)
    except InputError as error:
        return 3, error.message
    return 4, None


def kernel_of(row):
    value = importlib.import_module(row["module"])
    for part in row["kernel"].split("."):
        value = getattr(value, part)
    value = unwrap(value)
    while not hasattr(value, "params"):  # packages have autotuners of their own
        value = value.fn
    return value


def launch_of(kernel, row):
    """The launch of a row; shapes and values, which the table lacks, are of no account here."""
    signature, constants = json.loads(row["signature"]), json.loads(row["constexprs"])
    arguments = [
        argument(name, signature.get(name, "constexpr"), constants.get(name))
        for name in kernel.arg_names
    ]
    return Launch(kernel=kernel_source(kernel), arguments=tuple(arguments), grid=(1, 1, 1))


def argument(name, type_, constant):
    if type_.startswith("("):
        types = ast.literal_eval(type_)
        items = [argument(f"{name}.{index}", each, None) for index, each in enumerate(types)]
        return TupleArgument(name=name, items=tuple(items))
    if type_ == "constexpr":
        return ConstantArgument(name=name, value=constant_value(constant))
    if type_.startswith("*"):
        dtype = canonical_dtype(type_.removeprefix("*").removeprefix("k"))
        return ArrayArgument(name=name, dtype=dtype, shape=(1,), strides=(1,), buffer=0)
    return ScalarArgument(name=name, dtype=canonical_dtype(type_), value=2)


def constant_value(value):
    """The table spells element types as Triton prints them, which no string constant is called."""
    if not isinstance(value, str):
        return value
    try:
        return TypeConstant(dtype=canonical_dtype(value))
    except LaunchError:
        return value


if __name__ == "__main__":
    main()

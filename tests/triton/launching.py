"""Launches written as on the command line, and running them in Triton's interpreter."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np

from translators.triton.binding import bind
from translators.triton.kernels import find_kernel
from translators.triton.launch_text import parse_argument, parse_constant, parse_grid
from translators.triton.launches import (
    ArrayArgument,
    ConstantArgument,
)
from translators.triton.loading import load_file

HERE = Path(__file__).parent
KERNELS = HERE / "kernels.py"


def explicit(name, arguments, constants, grid):
    """A kernel of `kernels.py` and its launch."""
    kernel = find_kernel(load_file(KERNELS), name)
    parsed = [parse_argument(text, buffer=index) for index, text in enumerate(arguments)]
    parsed += [parse_constant(text) for text in constants]
    return kernel, bind(kernel, parsed, grid=parse_grid(grid))


def scalar_values(launch):
    """The values of the arguments that are no arrays, by name."""
    return {
        each.name: each.value for each in launch.arguments if not isinstance(each, ArrayArgument)
    }


def interpret(launch, arrays, directory):
    """What the arrays hold after a launch in Triton's interpreter."""
    values, given, out = (directory / name for name in ("values.json", "in.npz", "out.npz"))
    values.write_text(json.dumps(scalar_values(launch)), encoding="utf-8")
    np.savez(given, **arrays)
    command = [sys.executable, str(HERE / "interpreted.py"), launch.kernel.file]
    command += [launch.kernel.function, json.dumps(launch.grid), *map(str, (values, given, out))]
    environment = {"PYTHONPATH": str(HERE.parents[1]), "PATH": "/usr/bin:/bin"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    with np.load(out) as stored:
        return {name: stored[name] for name in stored.files}


def constants_of(launch):
    """The constant arguments, by name."""
    return {
        each.name: each.value for each in launch.arguments if isinstance(each, ConstantArgument)
    }

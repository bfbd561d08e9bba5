"""Runs one launch in Triton's interpreter; a program, as the interpreter is chosen at import.

    python interpreted.py KERNELS.py KERNEL GRID VALUES.json ARRAYS.npz OUT.npz

Arrays go by parameter name; what they hold after the launch is written to OUT.npz.
"""

import json
import os
import runpy
import sys
from pathlib import Path

os.environ["TRITON_INTERPRET"] = "1"

import numpy as np

from translators.triton.host_arrays import HostArray


def main(file, kernel, grid, values, arrays, out):
    with np.load(arrays) as stored:
        given = {name: HostArray(stored[name]) for name in stored.files}
    scalars = json.loads(Path(values).read_text(encoding="utf-8"))
    function = runpy.run_path(file)[kernel]
    function[tuple(json.loads(grid))](**given, **scalars)
    np.savez(out, **{name: array.values for name, array in given.items()})


if __name__ == "__main__":
    main(*sys.argv[1:])

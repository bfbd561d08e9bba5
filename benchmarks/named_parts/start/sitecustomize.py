"""Run by Python as it starts, in the processes of Triton's interpreter.

They load kernels' files anew, and find the modules that these import as the process does that
started them.
"""

import os
from pathlib import Path

from benchmarks.named_parts.cases import CHECKOUTS, prepare

if CHECKOUTS in os.environ:
    prepare(Path(os.environ[CHECKOUTS]))

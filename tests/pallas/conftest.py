import os
import sys
from pathlib import Path

TESTS = Path(__file__).parents[1]
for folder in (Path(__file__).parent, TESTS / "access", TESTS / "translate"):
    sys.path.insert(0, str(folder))

# The oracles are for a CPU, whatever else there is.
os.environ.setdefault("JAX_PLATFORMS", "cpu")

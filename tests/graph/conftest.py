"""The op graph computes with NumPy and ml_dtypes; without them there is nothing to test here."""

from importlib.util import find_spec

HERE = ("numpy", "ml_dtypes")
collect_ignore_glob = [] if all(find_spec(name) for name in HERE) else ["test_*.py"]

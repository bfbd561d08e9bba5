"""Outcomes kept over several runs: a file with a line of JSON for each launch."""

import json


def known(file):
    """The last outcome of each launch, by the file that it is kept in.

    Args:
      file: where outcomes are kept; `None` for nowhere.
    """
    if file is None or not file.is_file():
        return {}
    lines = file.read_text(encoding="utf-8").splitlines()
    return {result["file"]: result for result in map(json.loads, lines)}


def add(file, result):
    """Keeps an outcome."""
    if file is not None:
        with file.open("a", encoding="utf-8") as kept:
            kept.write(json.dumps(result) + "\n")

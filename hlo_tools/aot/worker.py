"""Compiles one function, in a process of its own: what it imports or crashes is its own affair.

    python -m hlo_tools.aot.worker TARGET EXAMPLE TOPOLOGY FOLDER REPLY

`compiling.py` starts it. The reply is a JSON object, written to a file, because the person's code
may print whatever it likes.
"""

import importlib
import json
import os
import sys
import threading
from dataclasses import asdict
from pathlib import Path
from typing import Any

from hlo_tools.aot.loading import load_call
from hlo_tools.aot.own_code import OwnCode
from hlo_tools.aot.program import compile_program, topology_devices
from hlo_tools.aot.targets import parse_target
from hlo_tools.errors import InputError

_ORPHANED = 75


def _end_with_the_parent() -> None:
    """Ends this process when standard input is closed, as it is when whoever started it is gone.

    The person's code finds nothing there to read.
    """
    waiting = os.dup(0)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)

    def wait() -> None:
        os.read(waiting, 1)
        os._exit(_ORPHANED)

    threading.Thread(target=wait, daemon=True).start()


def main(target: str, example: str, topology: str, folder: str, reply: str) -> None:
    """Compiles and writes the reply."""
    _end_with_the_parent()
    answer: dict[str, Any] = {}
    try:
        answer["refusal"] = _compiled(target, example or None, topology, Path(folder))
    except InputError as error:
        answer["error"] = {"message": error.message, "path": error.path, "line": error.line}
    Path(reply).write_text(json.dumps(answer), encoding="utf-8")


def _compiled(
    target_text: str, example: str | None, topology: str, folder: Path
) -> dict[str, Any] | None:
    with OwnCode("jax cannot be imported"):
        importlib.import_module("jax")
    target = parse_target(target_text, "--aot")
    devices = topology_devices(topology)
    call = load_call(target, example, devices)
    with OwnCode(f"`{target.name}` does not compile for {topology}", call.path):
        refusal = compile_program(call.function, call.args, call.kwargs, devices, folder)
    return None if refusal is None else asdict(refusal)


if __name__ == "__main__":
    main(*sys.argv[1:])

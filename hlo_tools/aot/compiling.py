"""Compiles functions for topologies, each in a process of its own and several at a time."""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from hlo_tools.analysis.memory_refusal import MemoryRefusal
from hlo_tools.aot.targets import Target, Topology, folder_name
from hlo_tools.errors import InputError, SettingsError

_ROOT = Path(__file__).resolve().parents[2]
_MAX_REASON_CHARACTERS = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Compilation:
    """A function to compile for a topology.

    Attributes:
      target: the function.
      example: what names the function of its example arguments, as `--args` does.
      topology: the TPUs.
    """

    target: Target
    example: str | None
    topology: Topology

    def __str__(self) -> str:
        return f"{self.target}@{self.topology.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class CompiledProgram:
    """What became of it.

    Attributes:
      compilation: what was compiled.
      folder: XLA's dump of it.
      kept: whether the folder stays when the run is over.
      refusal: what the compiler says if the program does not fit into device memory.
    """

    compilation: Compilation
    folder: Path
    kept: bool
    refusal: MemoryRefusal | None


def require_compiler() -> None:
    """Says at the start what would stop every compilation.

    Raises:
      SettingsError: jax or libtpu is not installed, or this is not Linux.
    """
    if sys.platform != "linux":
        raise SettingsError("libtpu compiles on Linux only; lint a dump that was made there")
    absent = [name for name in ("jax", "libtpu") if find_spec(name) is None]
    if absent:
        raise SettingsError(
            f"{' and '.join(absent)} cannot be found by {sys.executable}: "
            "`pip install 'hlo-tools[aot]'`"
        )


def compile_all(
    compilations: Sequence[Compilation], keep: Path | None
) -> Iterator[CompiledProgram | InputError]:
    """Compiles, as many at a time as there are processors, and yields in the order given.

    What was not kept is gone when the iterator is closed.

    Args:
      compilations: functions and topologies.
      keep: a directory for the dumps, one folder each; a folder's earlier dump is replaced.

    Raises:
      OSError: `keep` cannot be written to.
    """
    with ExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="hlo-lint-")))
        workers = stack.enter_context(_Workers(scratch))
        pool = stack.enter_context(ThreadPoolExecutor(min(len(compilations), _processors())))
        stack.callback(workers.stop)  # first of all, so that the pool has nothing to wait for
        pending = [
            pool.submit(workers.compile, each, folder, kept=keep is not None)
            for each, folder in zip(
                compilations, _folders(compilations, keep or scratch), strict=True
            )
        ]
        for future in pending:
            yield future.result()


def _processors() -> int:
    return len(os.sched_getaffinity(0))


def _folders(compilations: Sequence[Compilation], directory: Path) -> list[Path]:
    """A place for each dump, without an earlier one."""
    folders: list[Path] = []
    for number, each in enumerate(compilations, start=1):
        folder = directory / folder_name(each.target, each.topology)
        if folder in folders:  # of two files of the same name
            folder = folder.with_name(f"{folder.name}-{number}")
        if folder.is_dir():
            for old in folder.glob("module_*"):
                shutil.rmtree(old) if old.is_dir() else old.unlink()
        folder.mkdir(parents=True, exist_ok=True)
        folders.append(folder)
    return folders


class _Workers:
    """The processes that run; a context manager, which ends them.

    Args:
      scratch: a directory for what they write beside the dumps.
    """

    def __init__(self, scratch: Path) -> None:
        self._scratch = scratch
        self._running: set[subprocess.Popen[bytes]] = set()
        self._lock = threading.Lock()
        self._stopped = False

    def __enter__(self) -> "_Workers":
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Ends what runs, and starts nothing more."""
        with self._lock:
            self._stopped = True
            for process in self._running:
                process.kill()

    def compile(
        self, compilation: Compilation, folder: Path, *, kept: bool
    ) -> CompiledProgram | InputError:
        """Compiles in a process and waits for it."""
        reply = self._scratch / f"{folder.name}.reply"
        log = self._scratch / f"{folder.name}.log"
        arguments = [
            str(compilation.target),
            compilation.example or "",
            compilation.topology.name,
            str(folder.resolve()),
            str(reply),
        ]
        with log.open("wb") as output:
            with self._lock:
                if self._stopped:
                    return InputError("interrupted")
                process = subprocess.Popen(
                    [sys.executable, "-m", "hlo_tools.aot.worker", *arguments],
                    stdin=subprocess.PIPE,  # closed when this process is gone, however it ends
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    env=_environment(),
                )
                self._running.add(process)
            with process:
                # Not `communicate`, which would close what tells the process that we are there.
                status = process.wait()
            with self._lock:
                self._running.discard(process)
        if not reply.is_file():
            return InputError(f"`{compilation}`: {_last_words(status, log)}")
        answer = json.loads(reply.read_text(encoding="utf-8"))
        if "error" in answer:
            return InputError(**answer["error"])
        return CompiledProgram(
            compilation=compilation,
            folder=folder,
            kept=kept,
            refusal=MemoryRefusal(**answer["refusal"]) if answer["refusal"] else None,
        )


def _environment() -> dict[str, str]:
    # A TPU that is there is left alone: nothing of the program runs.
    paths = [str(_ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "JAX_PLATFORMS": "cpu", "PYTHONPATH": os.pathsep.join(paths)}


def _last_words(status: int, log: Path) -> str:
    """How a process ended that gave no reply, and why, as far as it says so."""
    how = f"of {signal.Signals(-status).name}" if status < 0 else f"with status {status}"
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    for line in lines:
        _, found, reason = line.partition("Check failed: ")
        if found:
            return f"the compiler's process ended {how}: {reason.strip()[:_MAX_REASON_CHARACTERS]}"
    last = next((line.strip() for line in reversed(lines) if line.strip()), "it says nothing")
    return f"the compiler's process ended {how}: {last[:_MAX_REASON_CHARACTERS]}"

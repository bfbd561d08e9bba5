"""The TPU compiler, ahead of time, in a process of its own.

No TPU has to be there: libtpu compiles for a topology that is named. It may end the process that
it is loaded into.
"""

import sys
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

from translators.verify.processes import Worker
from translators.verify.program import ArrayType, Program
from translators.verify.report import Finding

_ENVIRONMENT = {
    "JAX_PLATFORMS": "cpu",
    "TPU_SKIP_MDS_QUERY": "1",
    "TPU_ACCELERATOR_TYPE": "v5litepod-4",
    "TPU_WORKER_HOSTNAMES": "localhost",
    # Else a second process dies on the lock file of the first.
    "ALLOW_MULTIPLE_LIBTPU_LOAD": "1",
    "TF_CPP_MIN_LOG_LEVEL": "1",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Compilation:
    """A function to compile.

    Attributes:
      program: the function.
      arrays: what it takes by position.
      generation: of the TPU, as `TOPOLOGIES` calls it.
    """

    program: Program
    arrays: tuple[ArrayType, ...]
    generation: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Compiled:
    """What became of it.

    Attributes:
      absent: why there is no compiler for that generation; a clause.
      problem: the first line of what the compiler says against it; empty if it compiles.
      findings: what `hlo-lint` warns of in the compiled program.
      unlinted: why `hlo-lint` could not look at it; a clause.
    """

    absent: str = ""
    problem: str = ""
    findings: tuple[Finding, ...] = ()
    unlinted: str = ""


class Compiler:
    """Compiles functions for TPUs; a context manager, which ends the process."""

    def __init__(self) -> None:
        title = "the compiler's process"
        self._worker = Worker("translators.verify.compiler_worker", title, _ENVIRONMENT)

    def __enter__(self) -> "Compiler":
        return self

    def __exit__(self, *error: object) -> None:
        self._worker.close()

    def begin(
        self,
        program: Program,
        arrays: Sequence[ArrayType],
        generations: Sequence[str],
        seconds: float,
    ) -> Future[list[Any]]:
        """Compiles a function for several generations, while the caller does something else.

        Args:
          program: the function.
          arrays: what it takes by position.
          generations: of TPUs, as `TOPOLOGIES` calls them.
          seconds: how long all of it may take.

        Returns:
          What will be a `Compiled` for each generation, or a `NoReplyError`.
        """
        requests = [
            Compilation(program=program, arrays=tuple(arrays), generation=generation)
            for generation in generations
        ]
        return self._worker.begin(requests, seconds)


def missing() -> str:
    """Why nothing can be compiled on this machine, as a clause; empty if it can."""
    if sys.platform != "linux":
        return "libtpu compiles on Linux only"
    if find_spec("libtpu") is None:
        return "libtpu is not installed: `pip install 'hlo-tools[aot]'`"
    return ""

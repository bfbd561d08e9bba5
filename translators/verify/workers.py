"""The processes that a verification asks, which may serve many launches."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from translators.verify.compiler import Compiler
from translators.verify.interpreter import Interpreter
from translators.verify.simulator import Simulator


@dataclass(frozen=True, slots=True, kw_only=True)
class Workers:
    """What there is to ask; rungs of what is not there are left out or skipped.

    Attributes:
      interpreter: Triton's interpreter.
      simulator: Pallas's TPU interpret mode.
      compiler: the TPU compiler.
    """

    interpreter: Interpreter | None = None
    simulator: Simulator | None = None
    compiler: Compiler | None = None

    @property
    def on_cpu(self) -> "Workers":
        """Those that compare numbers."""
        return replace(self, compiler=None)


NOBODY = Workers()


@contextmanager
def all_workers() -> Iterator[Workers]:
    """All of them, until the end of the block; each process starts when it is first asked."""
    with Interpreter() as interpreter, Simulator() as simulator, Compiler() as compiler:
        yield Workers(interpreter=interpreter, simulator=simulator, compiler=compiler)

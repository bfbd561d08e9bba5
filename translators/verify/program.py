"""What was emitted, as text that another process can load."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrayType:
    """What an argument holds.

    Attributes:
      dtype: the name of NumPy's element type, those of `ml_dtypes` included.
      shape: elements along each dimension.
    """

    dtype: str
    shape: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """An emitted function.

    Attributes:
      name: the function's; of a module of StableHLO, the module's.
      source: a Python file, or a file of StableHLO modules.
      stablehlo: whether it is the latter.
      wide: whether it needs 64-bit types.
      numbers: element types of the numbers that it takes by position, after the arrays.
      defaults: numbers that it takes by name, where they differ from its own defaults.
    """

    name: str
    source: str
    stablehlo: bool = False
    wide: bool = False
    numbers: tuple[str, ...] = ()
    defaults: Mapping[str, float] = field(default_factory=dict)

    def load(self) -> Callable[..., Any]:
        """The function itself."""
        if self.stablehlo:
            from translators.emit.stablehlo import load_stablehlo

            call: Callable[..., Any] = load_stablehlo(self.source, self.name).call
            return call
        namespace: dict[str, Any] = {"__name__": self.name}
        exec(compile(self.source, f"<emitted {self.name}>", "exec"), namespace)
        return partial(namespace[self.name], **self.defaults)

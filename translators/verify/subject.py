"""What is to be proved: a launch, the kernel's graph, and the function emitted for it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from translators.graph.graph import Module
from translators.translation import Translation
from translators.triton.launches import Launch
from translators.verify.emitted import Emitted
from translators.verify.program import Program


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """What is to be proved.

    Attributes:
      launch: how the kernel is called.
      module: the kernel's verified graph.
      emitted: the function that is to do the same.
      kernel: the jitted function; `None` for a kernel given as Triton IR.
      values: what host code passed for each parameter, where it was recorded.
    """

    launch: Launch
    module: Module
    emitted: Emitted
    kernel: Any = None
    values: Mapping[str, Any] | None = None


def subject_of(
    translation: Translation, kernel: Any = None, values: Mapping[str, Any] | None = None
) -> Subject:
    """The proof that a translation needs.

    Args:
      translation: of a launch.
      kernel: the jitted function; `None` for a kernel given as Triton IR.
      values: what host code passed for each parameter, where the launch was recorded.
    """
    function = translation.function
    program = Program(name=function.name, source=function.source, wide=function.wide)
    return Subject(
        launch=translation.launch,
        module=translation.module,
        emitted=Emitted(signature=function, call=program.load(), program=program),
        kernel=kernel,
        values=values,
    )

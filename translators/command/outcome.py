"""What came of a run of the command, as values that the reports print."""

from dataclasses import dataclass, replace
from enum import Enum

from translators.access.analysis import Analysis
from translators.emit.jax import JaxFunction
from translators.triton.launches import (
    ArrayArgument,
    ConstantArgument,
    DescriptorArgument,
    Launch,
    ScalarArgument,
    Single,
    TypeConstant,
    row_major_strides,
    scalar_dtype,
)
from translators.verify.report import Report

EXIT_DONE, EXIT_REFUSED, EXIT_UNUSABLE = 0, 1, 2


class Status(Enum):
    """What became of a launch."""

    VERIFIED = "verified"
    TRANSLATED = "translated"
    REFUSED = "refused"
    NOT_EQUAL = "not equal"
    NOT_PROVED = "not proved"


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """Something that stands in the way.

    Attributes:
      message: one sentence without a full stop.
      path: the file, where known.
      line: its 1-based line, where known.
      column: the 1-based column, where known.
      refusal: whether what is given is well formed, and cannot be translated.
      text: the source line, indented as it is where that is known; empty if nothing is known.
    """

    message: str
    path: str | None = None
    line: int | None = None
    column: int | None = None
    refusal: bool = False
    text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelOutcome:
    """What became of one launch.

    Attributes:
      launch: the launch.
      call: the call that made it; empty for an explicit one.
      times: how often it was made.
      status: what became of it.
      emitted: `pallas`, `jax`, `stablehlo` or `graph`; empty where it was refused.
      function: what was emitted; `None` where it was refused.
      analysis: its accesses, where they are to be explained.
      report: what the verification found, where there was one.
      problem: why it is refused.
      text: the emitted text; empty where there is none.
    """

    launch: Launch
    call: str
    times: int
    status: Status
    emitted: str = ""
    function: JaxFunction | None = None
    analysis: Analysis | None = None
    report: Report | None = None
    problem: Problem | None = None
    text: str = ""

    @property
    def good(self) -> bool:
        """Whether its text may be used."""
        return self.status in (Status.VERIFIED, Status.TRANSLATED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of a run.

    Attributes:
      path: the person's file.
      emit: what was to be emitted; `auto` is Pallas where that can be, else JAX.
      kernels: what became of each launch.
      problems: what kept the file or the launches from being used.
      text: everything that was emitted; empty unless all launches are good.
      output: the file that it was written to; `None` if it was not.
    """

    path: str
    emit: str
    kernels: tuple[KernelOutcome, ...] = ()
    problems: tuple[Problem, ...] = ()
    text: str = ""
    output: str | None = None

    @property
    def exit_status(self) -> int:
        """0 if all is well, 1 if something is refused or not equal, 2 if nothing can be tried."""
        if not all(each.refusal for each in self.problems):
            return EXIT_UNUSABLE
        if self.problems or not all(each.good for each in self.kernels):
            return EXIT_REFUSED
        return EXIT_DONE


def launch_options(launch: Launch) -> list[str]:
    """The launch as options of this command.

    Tuples, functions and descriptors, which no option takes, are shown as they print.
    """
    options = ["--kernel", launch.kernel.function]
    seen: list[ArrayArgument] = []
    for argument in launch.singles:
        if isinstance(argument, ConstantArgument):
            options += ["--constexpr", f"{argument.name}={_constant(argument.value)}"]
        else:
            options += ["--arg", f"{argument.name}={_value(argument, seen)}"]
        if isinstance(argument, ArrayArgument):
            seen.append(argument)
    grid = list(launch.grid)
    while len(grid) > 1 and grid[-1] == 1:
        grid.pop()
    return [*options, "--grid", ",".join(map(str, grid))]


def _value(argument: Single, seen: list[ArrayArgument]) -> str:
    if isinstance(argument, DescriptorArgument):
        block = ",".join(map(str, argument.block_shape))
        return f"{_array(argument.array)} in blocks of [{block}]"
    if isinstance(argument, ArrayArgument):
        same = (each.name for each in seen if replace(each, name=argument.name) == argument)
        return next(same, None) or _array(argument)
    assert isinstance(argument, ScalarArgument)
    plain = scalar_dtype(argument.value) == argument.dtype
    value = str(argument.value).lower()
    return value if plain else f"{value}:{argument.dtype}"


def _array(array: ArrayArgument) -> str:
    shape = ",".join(map(str, array.shape))
    text = f"{array.dtype}[{shape}]"
    if array.strides != row_major_strides(array.shape):
        text += f":[{','.join(map(str, array.strides))}]"
    return text


def _constant(value: object) -> str:
    if isinstance(value, TypeConstant):
        return f"tl.{value.dtype}"
    if isinstance(value, bool) or value is None:
        return str(value).lower()
    if isinstance(value, str):
        return f"'{value}'" if '"' in value else f'"{value}"'  # the shell needs the other ones
    return str(value)

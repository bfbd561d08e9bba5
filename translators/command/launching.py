"""What a person asks to have translated -> the launches meant by it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from hlo_tools.errors import InputError
from translators.graph.errors import GraphError
from translators.graph.graph import Module
from translators.graph.verifier import verify
from translators.triton.binding import bind
from translators.triton.host_arrays import example_array
from translators.triton.kernels import find_kernel, find_kernels, unwrap
from translators.triton.launch_text import parse_argument, parse_constant, parse_grid
from translators.triton.launches import (
    Argument,
    ArrayArgument,
    ConstantArgument,
    Launch,
    LaunchError,
    ScalarArgument,
    pair_by_name,
)
from translators.triton.loading import load_file
from translators.triton.recorder import RecordedLaunch, record_call, recording
from translators.triton.ttir import read_ttir
from translators.triton.ttir_launches import bind_graph

TTIR_SUFFIX = ".ttir"


class ExitedError(InputError):
    """A person's file that ends the process instead of defining kernels."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What a person asks for.

    Attributes:
      path: a Python file, or one of Triton IR.
      calls: calls of host functions, such as `add(f32[1000], f32[1000])`.
      kernel: the kernel to launch, or with calls the only one of those launched that counts.
      backward: a kernel that counts besides, as the backward one.
      arguments: `name=value` of the kernel's arguments; `out=x` is the memory of `x` again.
      constants: `NAME=value` of its constexprs.
      grid: its grid.
      configuration: which of an autotuner's configurations to take.
    """

    path: Path
    calls: tuple[str, ...] = ()
    kernel: str | None = None
    backward: str | None = None
    arguments: tuple[str, ...] = ()
    constants: tuple[str, ...] = ()
    grid: str | None = None
    configuration: int = 0

    @property
    def is_ttir(self) -> bool:
        """Whether the file holds Triton IR."""
        return self.path.suffix == TTIR_SUFFIX

    @property
    def names_launch(self) -> bool:
        """Whether it says how anything is launched."""
        return bool(self.calls or self.arguments or self.constants or self.grid)


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One launch to translate.

    Attributes:
      launch: the launch.
      kernel: the jitted function; `None` for Triton IR.
      graph: the verified graph of Triton IR; `None` for a jitted function.
      values: what host code passed, where the launch was recorded.
      call: the call that made it; empty for an explicit launch.
      module: the person's file, for a jitted function.
      times: how often it was made.
    """

    launch: Launch
    kernel: Any = None
    graph: Module | None = None
    values: Any = None
    call: str = ""
    module: ModuleType | None = None
    times: int = 1


def load(path: Path) -> ModuleType:
    """The module that a person's file defines.

    Raises:
      InputError: it cannot be loaded.
    """
    try:
        return load_file(path)
    except SystemExit as error:
        raise _exited(path, "the file", error) from error


def tasks(request: Request) -> list[Task]:
    """The distinct launches that are asked for, in the order in which they are made.

    Raises:
      GraphError: an op of Triton IR is not supported.
      InputError: the file cannot be read or loaded, a call fails, or a launch does not fit its
        kernel.
    """
    if request.is_ttir:
        return [_ttir_task(request)]
    module = load(request.path)
    if not request.calls:
        return [_explicit_task(request, module)]
    made = [task for call in request.calls for task in _recorded_tasks(request, module, call)]
    if not made:
        calls = ", ".join(f"`{call}`" for call in request.calls)
        raise LaunchError(f"{calls} launches no kernel `{request.kernel}`", path=str(request.path))
    return _distinct(made)


def read_graph(path: Path) -> Module:
    """The verified graph of a file of Triton IR.

    Raises:
      GraphError: an op is not supported.
      InputError: the file cannot be read, or is no Triton IR.
    """
    try:
        module = read_ttir(path.read_text(encoding="utf-8"), str(path))
        verify(module)
    except UnicodeDecodeError as error:
        raise InputError("the file is no text in UTF-8", path=str(path)) from error
    except OSError as error:
        raise InputError(str(error.strerror), path=str(path)) from error
    except GraphError as error:
        error.path = error.path or str(path)
        raise
    except InputError as error:
        raise InputError(error.message, path=str(path)) from error
    return module


def _ttir_task(request: Request) -> Task:
    if request.calls:
        raise LaunchError(
            "the file holds Triton IR, which has no functions to call", path=str(request.path)
        )
    if request.constants:
        raise LaunchError(
            "constexprs are folded into Triton IR already, so none can be given",
            path=str(request.path),
        )
    graph = read_graph(request.path)
    if request.kernel is not None and request.kernel != graph.entry:
        raise LaunchError(
            f"there is no kernel `{request.kernel}`; found: `{graph.entry}`",
            path=str(request.path),
        )
    launch = bind_graph(graph, _arguments(request), grid=_grid(request), path=str(request.path))
    return Task(launch=launch, graph=graph)


def _explicit_task(request: Request, module: ModuleType) -> Task:
    if request.kernel is None:
        raise LaunchError("no kernel is named", path=str(request.path))
    kernel = find_kernel(module, request.kernel)
    grid = _grid(request)
    arguments = [*_arguments(request), *map(parse_constant, request.constants)]
    options: dict[str, object] = {}
    decorated = vars(module)[request.kernel]
    if decorated is not kernel:
        chosen = _decorated_launch(decorated, arguments, grid, request.configuration)
        given = pair_by_name(arguments)
        arguments += [
            each
            for each in chosen.arguments
            if isinstance(each, ConstantArgument)
            and each.name not in given
            and _is_constexpr(kernel, each.name)
        ]
        options = dict(chosen.options)
    launch = bind(kernel, arguments, grid=grid, options=options)
    return Task(launch=launch, kernel=kernel, module=module)


def _decorated_launch(
    decorated: Any, arguments: Sequence[Argument], grid: tuple[int, int, int], configuration: int
) -> Launch:
    """A launch of a kernel through its autotuners and heuristics, which add constants."""
    rng = np.random.default_rng(0)  # nobody looks at the elements
    values = {
        each.name: example_array(each, rng) if isinstance(each, ArrayArgument) else each.value
        for each in arguments
        if isinstance(each, ArrayArgument | ScalarArgument | ConstantArgument)
    }
    with recording(configuration) as recorded:
        decorated[grid](**values)
    (launch,) = recorded
    return launch.launch


def _is_constexpr(kernel: Any, name: str) -> bool:
    return any(each.name == name and each.is_constexpr for each in kernel.params)


def _arguments(request: Request) -> list[Argument]:
    """The arguments, `out=x` taken for the memory of the array `x`."""
    found: dict[str, Argument] = {}
    for index, text in enumerate(request.arguments):
        name, _, value = (part.strip() for part in text.partition("="))
        shared = found.get(value)
        argument = (
            replace(shared, name=name)
            if isinstance(shared, ArrayArgument) and name.isidentifier()
            else parse_argument(text, buffer=index)
        )
        if argument.name in found:
            raise LaunchError(f"the argument `{argument.name}` is given twice")
        found[argument.name] = argument
    return list(found.values())


def _grid(request: Request) -> tuple[int, int, int]:
    if request.grid is None:
        raise LaunchError("no grid is given, such as `--grid 4` or `--grid 4,2`")
    return parse_grid(request.grid)


def _recorded_tasks(request: Request, module: ModuleType, call: str) -> Iterator[Task]:
    called = call.partition("(")[0].strip()
    if called in find_kernels(module):
        raise LaunchError(
            f"`{called}` is a kernel, which `--kernel {called}` launches; `--launch` calls a "
            "function that launches kernels",
            path=str(request.path),
        )
    try:
        recorded = record_call(module, call, request.configuration)
    except SystemExit as error:
        raise _exited(request.path, f"`{call}`", error) from error
    for each in recorded:
        if request.kernel is None or {request.kernel, request.backward} & _names(each, module):
            yield Task(
                launch=each.launch,
                kernel=each.kernel,
                values=each.values,
                call=call,
                module=module,
            )


def _names(recorded: RecordedLaunch, module: ModuleType) -> set[str]:
    """What a kernel is called: by its definition, and by the file."""
    names = {name for name, value in vars(module).items() if unwrap(value) is recorded.kernel}
    return names | {recorded.launch.kernel.function}


def _distinct(made: list[Task]) -> list[Task]:
    """One task for all launches that are the same but for where their arrays lie."""
    found: dict[object, Task] = {}
    for task in made:
        # As text, in which `1`, `1.0` and `True` differ; functions differ by what they are.
        functions = [
            id(each.value)
            for each in task.launch.singles
            if isinstance(each, ConstantArgument) and callable(each.value)
        ]
        key = (id(task.kernel), repr(task.launch), *functions)
        known = found.get(key)
        found[key] = task if known is None else replace(known, times=known.times + 1)
    return list(found.values())


def _exited(path: Path, what: str, error: SystemExit) -> ExitedError:
    return ExitedError(f"{what} ends the process, with `{error.code}`", path=str(path))

"""The kernels of a person's file, and what a launch of each would need."""

import inspect
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

from translators.command.pointers import pointer_parameters
from translators.graph.graph import Module
from translators.graph.types import PointerType
from translators.triton.kernels import find_kernels, kernel_source, unwrap
from translators.triton.launches import LaunchError

CONSTEXPR, POINTER, SCALAR, UNKNOWN = "constexpr", "pointer", "scalar", "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """A parameter of a kernel, as far as it is known before a launch.

    Attributes:
      name: its name.
      kind: `constexpr`, `pointer`, `scalar`, or `unknown`: an array or a number.
      dtype: the element type, where the kernel says it; else empty.
      default: what it is where it is not given, as text; else empty.
      chosen: whether an autotuner or a heuristic gives it.
    """

    name: str
    kind: str
    dtype: str = ""
    default: str = ""
    chosen: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedKernel:
    """A kernel that was found.

    Attributes:
      name: what the file calls it.
      file: the file that defines it.
      line: the line of its `def`.
      parameters: in order.
      configurations: how many an autotuner has; 0 without one.
      launched_by: functions of the file that launch it, such as `add(x, y)`.
      called_by: other kernels of the file that call it.
    """

    name: str
    file: str
    line: int
    parameters: tuple[Parameter, ...]
    configurations: int = 0
    launched_by: tuple[str, ...] = ()
    called_by: tuple[str, ...] = ()

    @property
    def needs(self) -> str:
        """The options of an explicit launch, with `...` for what is to be filled in."""
        parts = [f"--kernel {self.name}"]
        for each in self.parameters:
            if each.default or each.chosen:
                continue
            if each.kind == CONSTEXPR:
                parts.append(f"--constexpr {each.name}=...")
            elif each.kind == POINTER:
                parts.append(f"--arg {each.name}={each.dtype or 'f32'}[...]")
            else:
                parts.append(f"--arg {each.name}=...")
        return " ".join([*parts, "--grid ..."])


def listed_kernels(module: ModuleType) -> list[ListedKernel]:
    """The kernels that a file defines, in the order of their lines."""
    kernels = find_kernels(module)
    users = {name: _used_names(kernel.fn.__code__) for name, kernel in kernels.items()}
    found = []
    for name, kernel in kernels.items():
        source = kernel_source(kernel)
        decorators = list(_decorators(vars(module)[name]))
        found.append(
            ListedKernel(
                name=name,
                file=source.file,
                line=source.line,
                parameters=tuple(_parameters(kernel, decorators)),
                configurations=sum(len(getattr(each, "configs", ())) for each in decorators),
                launched_by=tuple(_launchers(module, name)),
                called_by=tuple(
                    other for other, used in users.items() if name in used and other != name
                ),
            )
        )
    return sorted(found, key=lambda each: each.line)


def listed_graph(module: Module, path: Path) -> ListedKernel:
    """The kernel of a file of Triton IR."""
    kernel = module.kernel
    parameters = []
    for index, argument in enumerate(kernel.arguments):
        type_ = argument.type
        pointer = isinstance(type_, PointerType)
        dtype = str(type_.pointee if isinstance(type_, PointerType) else type_)
        parameters.append(
            Parameter(
                name=argument.name or f"arg{index}",
                kind=POINTER if pointer else SCALAR,
                dtype=dtype,
            )
        )
    line = kernel.location.line if kernel.location is not None else 1
    file = kernel.location.file if kernel.location is not None else str(path)
    return ListedKernel(name=kernel.name, file=file, line=line, parameters=tuple(parameters))


def only_kernel(kernels: Sequence[ListedKernel], name: str, path: Path) -> ListedKernel:
    """The kernel of that name.

    Raises:
      LaunchError: there is none; the message lists those that there are.
    """
    for each in kernels:
        if each.name == name:
            return each
    known = ", ".join(f"`{each.name}`" for each in kernels) or "none"
    raise LaunchError(f"there is no kernel `{name}`; found: {known}", path=str(path))


def _decorators(value: Any) -> Iterator[Any]:
    """The autotuners and heuristics around a jitted function."""
    kernel = unwrap(value)
    while value is not kernel:
        yield value
        value = value.fn


def _parameters(kernel: Any, decorators: list[Any]) -> Iterator[Parameter]:
    pointers = pointer_parameters(kernel)
    chosen = set()
    for each in decorators:
        chosen |= set(getattr(each, "values", ()))  # of heuristics
        for config in getattr(each, "configs", ()):
            chosen |= set(config.kwargs)
    for parameter in kernel.params:
        annotated = parameter.annotation_type
        if parameter.is_constexpr:
            kind, annotated = CONSTEXPR, ""
        elif annotated.startswith("*") or (not annotated and parameter.name in pointers):
            kind = POINTER
        else:
            kind = SCALAR if annotated else UNKNOWN
        yield Parameter(
            name=parameter.name,
            kind=kind,
            dtype=annotated.removeprefix("*").removeprefix("k"),
            default=repr(parameter.default) if parameter.has_default else "",
            chosen=parameter.name in chosen,
        )


def _launchers(module: ModuleType, kernel: str) -> Iterator[str]:
    """Functions and methods of the file that speak of a kernel, with what they take."""
    for name, value in vars(module).items():
        if getattr(value, "__module__", None) != module.__name__:
            continue
        members = [(name, value)]
        if isinstance(value, type):
            members = [(f"{name}.{inner}", each) for inner, each in vars(value).items()]
        for title, member in members:
            function = getattr(member, "__func__", member)
            if isinstance(function, FunctionType) and kernel in _used_names(function.__code__):
                yield f"{title}{inspect.signature(function)}"


def _used_names(code: CodeType) -> set[str]:
    """Global names that a function, or one inside of it, uses."""
    names: set[str] = set()
    pending = [code]
    while pending:
        each = pending.pop()
        names |= set(each.co_names)
        pending += [inner for inner in each.co_consts if isinstance(inner, CodeType)]
    return names

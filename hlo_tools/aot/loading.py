"""The person's function and its example arguments, imported: for a process of its own."""

import functools
import importlib
import importlib.util
import inspect
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from hlo_tools.aot.own_code import OwnCode, shown
from hlo_tools.aot.targets import Target, parse_target
from hlo_tools.configuration import unknown
from hlo_tools.errors import InputError

EXAMPLE = "hlo_lint_example"
"""The function of the example arguments, where none is named."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A function and what it is called with.

    Attributes:
      function: the one to compile.
      args: what it takes by position.
      kwargs: what it takes by name.
      path: the file that says what the arguments are.
    """

    function: Any
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    path: str


def load_call(target: Target, example: str | None, devices: Sequence[Any]) -> Call:
    """Imports a function and makes its example arguments.

    Args:
      target: the function.
      example: what `--args` names: a function beside it, or one of another module or file.
      devices: of the topology; the function of the example arguments is given them if it takes
        an argument.

    Raises:
      InputError: the function or that of its arguments cannot be imported or does not exist, or
        what the latter returns is no arguments.
    """
    function, _ = _function(target)
    if example is None or ":" not in example:
        maker_target = Target(source=target.source, name=example or EXAMPLE)
    else:
        maker_target = parse_target(example, "--args")
    maker, path = _function(maker_target, needed_by=target)
    with OwnCode(f"`{maker_target.name}` fails", path):
        made = maker(devices) if _takes_devices(maker, maker_target.name, path) else maker()
    if isinstance(made, functools.partial):
        return Call(function=made.func, args=made.args, kwargs=made.keywords, path=path)
    if isinstance(made, tuple) and not hasattr(made, "_fields"):
        return Call(function=function, args=made, kwargs={}, path=path)
    if isinstance(made, dict) and all(isinstance(key, str) for key in made):
        return Call(function=function, args=(), kwargs=made, path=path)
    raise InputError(
        f"`{maker_target.name}` returns a `{type(made).__name__}`: it must return a tuple of the "
        "arguments by position (`return x,` for one), a dict of the arguments by name, or "
        "`functools.partial(function, *args, **kwargs)`",
        path=path,
    )


def _function(target: Target, needed_by: Target | None = None) -> tuple[Any, str]:
    """A function, and the file in which it was looked for."""
    module = _import(target)
    path = target.source if target.is_file else shown(module.__file__ or target.source)
    value: Any = module
    for part in target.name.split("."):
        if not hasattr(value, part):
            raise InputError(_absent(part, value, target, needed_by), path=path)
        value = getattr(value, part)
    if not callable(value):
        kind = type(value).__name__
        raise InputError(f"`{target.name}` is no function but a `{kind}`", path=path)
    return value, path


def _absent(part: str, owner: Any, target: Target, needed_by: Target | None) -> str:
    if needed_by is not None and target.name == EXAMPLE:
        return (
            f"there is no function `{EXAMPLE}` here: write one that returns the example arguments "
            f"of `{needed_by.name}`, or name another one with `--args`"
        )
    names = [name for name in vars(owner) if not name.startswith("_")]
    return unknown("function", part, names)


def _import(target: Target) -> ModuleType:
    """The module, found as by `python -m` or by `python FILE`."""
    if not target.is_file:
        with OwnCode(f"`{target.source}` cannot be imported"):
            return importlib.import_module(target.source)
    path = Path(target.source).resolve()
    name = path.stem
    known = sys.modules.get(name)
    if known is not None and getattr(known, "__file__", None) == str(path):
        return known
    if str(path.parent) not in sys.path:
        sys.path.insert(0, str(path.parent))
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None  # it ends in `.py`
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    with OwnCode("this cannot be imported", target.source):
        spec.loader.exec_module(module)
    return module


def _takes_devices(maker: Any, name: str, path: str) -> bool:
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    parameters = inspect.signature(maker).parameters.values()
    needed = [p.name for p in parameters if p.default is p.empty and p.kind in positional]
    if len(needed) > 1:
        raise InputError(
            f"`{name}` takes {len(needed)} arguments: it is given the devices of the topology, "
            "or nothing",
            path=path,
        )
    return any(p.kind in positional for p in parameters)

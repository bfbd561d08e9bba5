"""The cache of collected launches: one file each, with the memory that its arguments lie in.

Kernels are stored by where they are found, with the globals that they use where their file alone
does not define them (generated files are given some after they are loaded).
"""

import hashlib
import importlib
import importlib.util
import io
import math
import pickle
import re
import sys
import zlib
from dataclasses import dataclass
from pathlib import Path
from types import FunctionType, ModuleType

import numpy as np
from triton.runtime.jit import JITFunction

from translators.triton.launches import ConstantArgument, Launch, ScalarArgument
from translators.triton.recorder import recording

VARIANTS = 3
_MODULES = {}  # by path: files loaded that no import finds
# What generators put into names: the number of axes, and a digest of the source.
_RANK = re.compile(r"(_kernel)?_rank_\d+(_pid_\d+)?$")
_DIGEST = re.compile(r"(?<=[0-9a-f]{8})[0-9a-f]{24,}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Collected:
    """One launch with what it found in memory.

    Attributes:
      package: whose kernel it is.
      module: the module that defines it, or the stem of its file.
      kernel: the name of the kernel; that of the function for one made by a generator.
      unit: what was run.
      launch: the launch.
      memory: the bytes of each memory before the launch, by its number.
      jitted: the kernel, a `JITFunction`.
    """

    package: str
    module: str
    kernel: str
    unit: str
    launch: Launch
    memory: dict[int, np.ndarray]
    jitted: JITFunction

    @property
    def name(self):
        return f"{self.module}.{self.kernel}"

    @property
    def cost(self):
        """How much there is to run: programs, and bytes that they may touch."""
        return math.prod(self.launch.grid) * 4096 + sum(map(len, self.memory.values()))

    @property
    def specialisation(self):
        """What makes it another variant: types, constants and ranks, not sizes."""
        parts = [self.module, self.launch.kernel.function]
        for argument in self.launch.singles:
            text = f"{argument.name}:{argument.type}"
            if isinstance(argument, ConstantArgument):
                text += f"={_constant_text(argument.value)}"
            parts.append(text)
        return hashlib.sha1("\n".join(map(str, parts)).encode()).hexdigest()[:12]


def kernel_name(jitted):
    """(module, kernel), the same for the kernels that a generator makes for each number of axes."""
    module = jitted.fn.__module__
    if module == "__main__":
        module = Path(jitted.fn.__code__.co_filename).stem
    module = _DIGEST.sub("", _RANK.sub("", module))
    return module, _RANK.sub("", jitted.fn.__qualname__).replace(".<locals>", "")


def _constant_text(value):
    return getattr(value, "__qualname__", None) or getattr(value, "__name__", None) or repr(value)


class Store:
    """The directory of collected launches."""

    def __init__(self, directory):
        self.directory = Path(directory)

    def paths(self):
        return sorted(self.directory.glob("*/*.launch"))

    def has(self, collected):
        return self._path(collected).is_file()

    def keep(self, collected):
        """Stores a launch unless as many smaller ones of its kernel are there; says if it did."""
        path = self._path(collected)
        path.parent.mkdir(parents=True, exist_ok=True)
        others = sorted(path.parent.glob(f"{_safe(collected.name)}@*.launch"), key=_cost_of)
        if path in others and _cost_of(path) <= collected.cost:
            return False
        rest = [each for each in others if each != path]
        if len(rest) >= VARIANTS:
            if _cost_of(rest[-1]) <= collected.cost:
                return False
            rest[-1].unlink()
        header = {
            "package": collected.package,
            "module": collected.module,
            "kernel": collected.kernel,
            "unit": collected.unit,
            "cost": collected.cost,
        }
        data = _dump((collected.launch, collected.memory, collected.jitted))
        temporary = path.with_suffix(".part")
        with temporary.open("wb") as file:
            pickle.dump(header, file)
            pickle.dump(zlib.compress(data, 1), file)
        temporary.rename(path)
        return True

    def _path(self, collected):
        name = f"{_safe(collected.name)}@{collected.specialisation}.launch"
        return self.directory / collected.package / name


def _safe(name):
    return re.sub(r"[^\w.]+", "_", name)[-150:]


def header(path):
    """What is known of a stored launch without loading its kernel."""
    with path.open("rb") as file:
        return pickle.load(file)


def _cost_of(path):
    return header(path)["cost"]


def load(path):
    """A stored launch, with its kernel imported again."""
    with path.open("rb") as file:
        known = pickle.load(file)
        data = zlib.decompress(pickle.load(file))
    launch, memory, jitted = _Unpickler(io.BytesIO(data)).load()
    known.pop("cost")
    return Collected(**known, launch=launch, memory=memory, jitted=jitted)


class _Pickler(pickle.Pickler):
    """Stores kernels, functions and modules by name."""

    def persistent_id(self, value):
        if isinstance(value, JITFunction):
            return _reference(value)
        if isinstance(value, ModuleType):
            return ("module", value.__name__)
        if isinstance(value, FunctionType) and _is_named(value):
            return ("named", value.__module__, value.__qualname__)
        return None


class _Unpickler(pickle.Unpickler):
    def persistent_load(self, reference):
        kind, *rest = reference
        if kind == "module":
            return importlib.import_module(rest[0])
        if kind == "named":
            return _attribute(importlib.import_module(rest[0]), rest[1])
        if kind == "kernel":
            root, module, name = rest
            if root not in sys.path:
                sys.path.append(root)
            return _jitted(_attribute(importlib.import_module(module), name))
        path, name, given = rest
        module = _module_of_file(path)
        # A package that loads a generated file may then give its names other meanings.
        vars(module).update(_Unpickler(io.BytesIO(given)).load())
        return _jitted(_attribute(module, name))


def _dump(value):
    buffer = io.BytesIO()
    _Pickler(buffer, protocol=5).dump(value)
    return buffer.getvalue()


def _reference(kernel):
    """Where to find a kernel again: by import if that gives the same, else by its file."""
    function = kernel.fn
    if "<locals>" in function.__qualname__:
        raise pickle.PicklingError(f"`{function.__qualname__}` is made anew by each call")
    module = sys.modules.get(function.__module__)
    file = function.__code__.co_filename
    if module is not None and getattr(module, "__file__", None) == file:
        name = _name_in(vars(module), kernel)
        root = _root(module.__name__, file)
        if name is not None and root is not None:
            return ("kernel", root, function.__module__, name)
    scope = function.__globals__
    name = _name_in(scope, kernel)
    if name is None:
        raise pickle.PicklingError(f"`{function.__qualname__}` is a global of no module")
    names = set(function.__code__.co_names)
    given = {
        each: value
        for each, value in scope.items()
        if each in names and not each.startswith("__") and _storable(value)
    }
    return ("file", file, name, _dump(given))


def _name_in(scope, kernel):
    """Under which name a kernel is found: its own, unless that now means something else."""
    own = kernel.fn.__qualname__
    if "." in own:
        return own
    candidates = [own, *scope]
    return next((name for name in candidates if _jitted(scope.get(name)) is kernel), None)


def _root(module, file):
    """The directory from which an import finds the module in that file; `None` if none does."""
    parts = module.split(".")
    path = Path(file)
    expected = [*parts[:-1], f"{parts[-1]}.py"]
    if path.name == "__init__.py":
        expected = [*parts, "__init__.py"]
    if list(path.parts[-len(expected) :]) != expected:
        return None
    return str(Path(*path.parts[: -len(expected)]))


def _storable(value):
    if isinstance(value, FunctionType):
        return _is_named(value)
    return isinstance(
        value, JITFunction | ModuleType | int | float | str | bool | type(None)
    ) or type(value).__module__.startswith("triton.language")


def _is_named(function):
    """Whether an import of the function's module finds it by its name."""
    module = sys.modules.get(function.__module__)
    return module is not None and _attribute(module, function.__qualname__, None) is function


def _attribute(owner, qualname, *default):
    for part in qualname.split("."):
        owner = getattr(owner, part, *default)
    return owner


def _jitted(value):
    """The jitted function inside autotuners, heuristics and packages' own wrappers."""
    while value is not None and not isinstance(value, JITFunction):
        held = getattr(value, "__dict__", {})
        inside = [each for each in held.values() if isinstance(each, JITFunction)]
        value = inside[0] if len(inside) == 1 else held.get("fn")
    return value


def _module_of_file(path):
    if path not in _MODULES:
        name = f"_collected_{len(_MODULES)}_{Path(path).stem}"
        spec = importlib.util.spec_from_file_location(name, path)
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        with recording():  # scripts launch their kernels as they are loaded
            spec.loader.exec_module(module)
        _MODULES[path] = module
    return _MODULES[path]


def describe(launch):
    """The launch in one line, for reports."""
    parts = []
    for argument in launch.singles:
        if isinstance(argument, ConstantArgument):
            parts.append(f"{argument.name}={_constant_text(argument.value)}")
        elif isinstance(argument, ScalarArgument):
            parts.append(f"{argument.name}={argument.dtype}({argument.value})")
        else:
            array = getattr(argument, "array", argument)
            parts.append(f"{argument.name}={array.dtype}{list(array.shape)}")
    return f"grid={launch.grid} {' '.join(parts)}"

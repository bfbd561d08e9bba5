"""Loading a person's Python file, which runs it as a test runner would.

Launches that it makes on the way, as the official tutorials do, are not run.
"""

import importlib
import importlib.util
import sys
from pathlib import Path
from types import ModuleType

from hlo_tools.errors import InputError
from translators.triton.host_code import HostCode
from translators.triton.recorder import recording


def load_file(path: Path) -> ModuleType:
    """The module that a Python file defines, loaded as if there were a GPU.

    A file inside a package is loaded as part of that package, so that its relative imports work.

    Raises:
      InputError: there is no such file, or it raises while it runs.
    """
    if not path.is_file():
        raise InputError("there is no such file", path=str(path))
    path = path.resolve()
    root, name = _module_name(path)
    for loaded in list(sys.modules.values()):
        if _is_module_of(loaded, path):
            return loaded
    if str(root) not in sys.path:  # as for a script; it may also import later, when it is called
        sys.path.insert(0, str(root))
    with recording(), HostCode(str(path), "the file cannot be loaded"):
        return importlib.import_module(name) if "." in name else _load_alone(name, path)


def _module_name(path: Path) -> tuple[Path, str]:
    """The directory to import from, and the dotted name there."""
    parts = [path.stem]
    directory = path.parent
    while (directory / "__init__.py").is_file():
        parts.insert(0, directory.name)
        directory = directory.parent
    return directory, ".".join(parts)


def _is_module_of(module: ModuleType, path: Path) -> bool:
    file = getattr(module, "__file__", None)
    return file is not None and Path(file).resolve() == path


def _load_alone(stem: str, path: Path) -> ModuleType:
    name = stem
    while name in sys.modules:  # another module must not be lost to a file of the same name
        name += "_"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise InputError("the file is no Python file", path=str(path))
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module

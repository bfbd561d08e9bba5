"""Imports a few modules of a large package, with stand-ins for all others that they import.

A package such as vLLM imports its configuration, its compiled extensions and its servers before the
first kernel. Of such a package only named modules are executed, from a checkout; packages on the
way to them are empty, and of every other module anything can be imported, and nothing is in it.
"""

import sys
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import spec_from_file_location
from pathlib import Path
from types import ModuleType
from unittest.mock import MagicMock


class StandIns(MetaPathFinder):
    """Finds the modules of one package.

    Args:
      folder: the folder of the package itself.
      real: the modules that are executed, by their full names.
      answers: what certain names of modules that are not executed are; `module.name` to a value.
    """

    def __init__(self, folder, real, answers):
        self._folder = folder
        self._real = real
        self._answers = answers

    def install(self):
        """Answers imports from now on, before any other finder."""
        if not any(isinstance(each, StandIns) and each._same(self) for each in sys.meta_path):
            sys.meta_path.insert(0, self)

    def _same(self, other):
        return self._folder == other._folder

    def find_spec(self, fullname, path=None, target=None):
        root, *parts = fullname.split(".")
        if root != self._folder.name:
            return None
        place = self._folder.joinpath(*parts)
        if fullname in self._real:
            if place.is_dir():
                return spec_from_file_location(
                    fullname, place / "__init__.py", submodule_search_locations=[str(place)]
                )
            file = str(place.with_suffix(".py"))
            return spec_from_file_location(fullname, file, loader=SourceFileLoader(fullname, file))
        found = ModuleSpec(fullname, _Loader(self._given(fullname)), is_package=True)
        found.submodule_search_locations = [str(place)]
        return found

    def _given(self, module):
        start = f"{module}."
        return {
            name.removeprefix(start): value
            for name, value in self._answers.items()
            if name.rpartition(".")[0] == module
        }


class _Loader(Loader):
    """Makes a module of given names, in which any other name is a mock."""

    def __init__(self, given):
        self._given = given

    def create_module(self, spec):
        return _Anything(spec.name)

    def exec_module(self, module):
        vars(module).update(self._given)


class _Anything(ModuleType):
    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        place = Path(self.__path__[0], name)
        if place.is_dir() or place.with_suffix(".py").is_file():
            return import_module(f"{self.__name__}.{name}")
        return MagicMock(name=f"{self.__name__}.{name}")

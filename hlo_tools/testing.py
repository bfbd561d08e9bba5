"""What the fixture `hlo_lint` gives to a test."""

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hlo_tools.aot.compiling import Compilation, require_compiler
from hlo_tools.aot.in_process import compiled_function, devices_of
from hlo_tools.aot.subjects import compiled_subjects
from hlo_tools.aot.targets import parse_target, parse_topology
from hlo_tools.api import CompiledProgram, LintResult, lint_with, subjects_of
from hlo_tools.baseline import read_baseline, write_baseline
from hlo_tools.conditions import Breaches
from hlo_tools.errors import InputError, SettingsError
from hlo_tools.findings import Severity
from hlo_tools.progress import Progress
from hlo_tools.run import Subject
from hlo_tools.settings import Overrides, load_settings
from passes.catalog import BY_ID, BY_NAME

_UNSAFE = re.compile(r"[^\w.-]+", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshots:
    """Where the reviewed findings of one test lie.

    Attributes:
      folder: of the test's file.
      test: the name of the test, parameters included.
      update: write them instead of comparing.
      root: of the project, to which shown paths are relative.
    """

    folder: Path
    test: str
    update: bool
    root: Path
    _used: set[Path] = field(default_factory=set)

    def file(self, name: str) -> Path:
        """The file of one snapshot of the test.

        Raises:
          SettingsError: the test has used it already.
        """
        stem = _UNSAFE.sub("-", f"{self.test}.{name}" if name else self.test).strip("-")
        path = self.folder / f"{stem}.json"
        if path in self._used:
            raise SettingsError("a second snapshot of the same test needs a name of its own")
        self._used.add(path)
        return path

    def shown(self, path: Path) -> str:
        """The path as a person would write it."""
        return str(path.relative_to(self.root)) if path.is_relative_to(self.root) else str(path)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class CheckedProgram(LintResult):
    """What was found in a program that a test has linted."""

    snapshots: Snapshots

    def matches_snapshot(self, name: str = "") -> "CheckedProgram":
        """Asserts that the findings are those of a reviewed file beside the test.

        The file is a baseline, which `hlo-lint --baseline` takes as well; notes are not in it.
        `pytest --hlo-lint-update` writes it.

        Args:
          name: tells the snapshots of one test apart.

        Raises:
          AssertionError: there is no such file, or findings that are new or gone.
        """
        __tracebackhide__ = True
        path = self.snapshots.file(name)
        shown = self.snapshots.shown(path)
        found = [f for f in self.findings if f.severity >= Severity.WARNING]
        if self.snapshots.update:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_baseline(path, found)
            return self
        how = "`pytest --hlo-lint-update` writes it; review it and commit it"
        if not path.is_file():
            raise AssertionError(f"there is no snapshot {shown} yet: {how}")
        known = read_baseline(path).entries
        breaches = Breaches(self.outcome, self.options)
        breaches.found([f for f in found if f.fingerprint not in known], "new, ")
        seen = {f.fingerprint for f in found}
        for entry in known.values():
            if entry.fingerprint not in seen:
                rule = BY_ID[entry.id].name if entry.id in BY_ID else "of a rule that is gone"
                breaches.tell(f"gone: {entry.id} {rule} in `{entry.module}` ({entry.fingerprint})")
        breaches.raise_any(f"differs from {shown}: {how}")
        return self


@dataclass(frozen=True, slots=True, repr=False)
class Linter:
    """The fixture: call it with a program."""

    snapshots: Snapshots

    def devices(self, topology: str) -> tuple[Any, ...]:
        """The devices of a topology, to make the mesh of the example arguments of.

        Raises:
          InputError: there is no such topology, or no compiler.
        """
        return devices_of(topology)

    def __call__(
        self,
        program: Any,
        *args: Any,
        topology: str | None = None,
        example: str | None = None,
        chip: str | None = None,
        select: Iterable[str] | None = None,
        ignore: Iterable[str] | None = None,
        **kwargs: Any,
    ) -> CheckedProgram:
        """Lints a program, compiled if it is not yet.

        Args:
          program: a function, compiled in this process; `file.py:function` or
            `pkg.module:function`, compiled in one of its own; a path of a dump, HLO text or a
            compiled program.
          args: what a function takes by position; `jax.ShapeDtypeStruct` stands for an array.
          topology: the TPUs to compile a function for, `v5e:4x4`.
          example: with `file.py:function`, what `--args` of the command names.
          chip: what to model, for a program that is compiled already.
          select: names or ids of the rules to run.
          ignore: names or ids of rules not to run.
          kwargs: what a function takes by name.

        Raises:
          InputError: the program cannot be had. What JAX or the compiler object to in a function
            is raised as they raise it.
        """
        __tracebackhide__ = True
        overrides = Overrides(
            select=None if select is None else tuple(select),
            ignore=None if ignore is None else tuple(ignore),
            chip=chip,
        )
        try:
            settings = load_settings(None, overrides, BY_NAME)
            result = lint_with(settings, _subjects(program, args, kwargs, topology, example))
        except InputError as error:  # the test's own mistake: where we noticed it tells nothing
            raise error.with_traceback(None) from error.__cause__
        return CheckedProgram(
            outcome=result.outcome, options=result.options, snapshots=self.snapshots
        )


def _subjects(
    program: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    topology: str | None,
    example: str | None,
) -> Iterable[Subject | InputError]:
    __tracebackhide__ = True
    compiled = isinstance(program, str | os.PathLike | CompiledProgram)
    if compiled and (args or kwargs):
        raise SettingsError("arguments go with a function, and this is none")
    if topology is None:
        if not compiled:
            raise SettingsError('name the TPUs to compile for, as `topology="v5e:2x2"`')
        return subjects_of(program)
    if isinstance(program, str):
        require_compiler()
        compilation = Compilation(
            target=parse_target(program, "hlo_lint"),
            example=example,
            topology=parse_topology(topology),
        )
        return compiled_subjects([compilation], None, Progress())
    if compiled:
        raise SettingsError("`topology` goes with a function; of what is compiled, name the `chip`")
    if not callable(program):
        raise SettingsError(f"a `{type(program).__name__}` is no program")
    return compiled_function(program, args, kwargs, topology)

"""The command `hlo-lint diff`."""

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from hlo_tools import __version__
from hlo_tools.console import complain, once, option_once, screen, write_stdout

if TYPE_CHECKING:
    from hlo_tools.comparison import Comparison, ModuleComparison
    from hlo_tools.diff.compare import ReadModule
    from hlo_tools.findings import Problem
    from hlo_tools.progress import Progress
    from hlo_tools.settings import RuleSpec, Settings


def _percent(_: click.Context, option: click.Parameter, values: tuple[str, ...]) -> float | None:
    """A share as people write it, `2%`, `2 %` or `2`, as a number from 0 to 1."""
    given = once(_, option, values)
    if given is None:
        return None
    try:
        percent = float(given.strip().removesuffix("%"))
    except ValueError:
        percent = math.nan
    if not 0 <= percent < math.inf:
        raise click.UsageError(f"`{option.opts[-1]} {given}` is no percentage such as 2%")
    return percent / 100


@click.command(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.argument("old")
@click.argument("new")
@option_once("--format", "format_name", type=click.Choice(("text", "json")), help="Of the report.")
@option_once("-o", "--output", metavar="FILE", help="Write the report there; `-` is the screen.")
@click.option(
    "--fail-on-regression",
    multiple=True,
    callback=_percent,
    metavar="PERCENT",
    help="Exit with status 1 if a modelled step got slower by more than that, for example 2%.",
)
@option_once(
    "--chip", metavar="NAME", help="Chip to model, for example v5e (default: as the dumps tell)."
)
@option_once("--source-root", metavar="DIR", help="Directory of your source.")
@option_once(
    "--config", metavar="FILE", help="Configuration (default: the nearest pyproject.toml)."
)
@option_once(
    "--color",
    type=click.Choice(("auto", "always", "never")),
    help="Colour the text (default: auto, on a terminal).",
)
@click.option("--show-notes", is_flag=True, help="Show changes of less than 0.1 % of a step too.")
@click.pass_obj
def command(rules: "Mapping[str, RuleSpec]", /, old: str, new: str, **options: Any) -> int:
    """Says what NEW costs more than OLD, where in your source, and what the compiler changed.

    OLD and NEW are HLO dumps of one program as `hlo-lint` reads them: text or .hlo.pb, also
    gzipped, or directories of them, whose modules are compared one by one.
    """
    from pathlib import Path

    from hlo_tools.destinations import check_writable
    from hlo_tools.hardware import chip
    from hlo_tools.progress import Progress
    from hlo_tools.settings import Overrides, load_settings
    from hlo_tools.source import SourceTree

    if old == new == "-":
        raise click.UsageError("standard input cannot be both OLD and NEW")
    overrides = Overrides(
        chip=options["chip"],
        source_root=Path(options["source_root"]) if options["source_root"] else None,
        show_notes=options["show_notes"] or None,
    )
    config = Path(options["config"]) if options["config"] else None
    settings = load_settings(config, overrides, rules)
    if settings.chip is not None:
        chip(settings.chip)
    file = Path(options["output"]) if options["output"] not in (None, "-") else None
    if file is not None:
        check_writable(file)
    tree = SourceTree.open(settings.source_root)
    progress = Progress()
    try:
        comparison = _compare(old, new, settings, options["fail_on_regression"], progress)
    finally:
        progress.clear()
    _write(comparison, file, settings, tree, options)
    return comparison.exit_status


def _compare(
    old: str, new: str, settings: "Settings", allowed: float | None, progress: "Progress"
) -> "Comparison":
    from hlo_tools.comparison import Comparison
    from hlo_tools.diff.compare import Modelling, compare
    from hlo_tools.diff.pairing import pair_modules
    from hlo_tools.errors import InputError
    from hlo_tools.findings import Problem

    problems: list[Problem] = []
    pairing = pair_modules(_read(old, problems, progress), _read(new, problems, progress))
    modelling = Modelling(
        chip=settings.chip,
        library_paths=settings.library_paths,
        own_paths=settings.own_paths,
    )
    modules = []
    for before, after in pairing.pairs:
        progress.update("comparing", after.path, len(after.module.text))
        try:
            modules.append(compare(before, after, modelling))
        except InputError as error:
            problems.append(Problem(message=error.message, path=error.path, line=error.line))
    if allowed is not None:
        problems += filter(None, map(_unjudged, modules))
    if not modules and not problems:
        problems.append(Problem(message="no module is in both the old and the new dumps"))
    return Comparison(
        tool_version=__version__,
        modules=tuple(modules),
        only_old=tuple((side.path, side.module.name) for side in pairing.only_old),
        only_new=tuple((side.path, side.module.name) for side in pairing.only_new),
        problems=tuple(problems),
        allowed=allowed,
    )


def _unjudged(module: "ModuleComparison") -> "Problem | None":
    """What keeps a step from being held to the regression that is allowed."""
    from hlo_tools.findings import Problem

    what = f"the step of module `{module.new.name}` cannot be held to `--fail-on-regression`"
    if module.old.truncated or module.new.truncated:
        path = module.old.path if module.old.truncated else module.new.path
        return Problem(message=f"{what}: the dump is truncated", path=path)
    if module.regression is None:
        message = f"{what}: it has no modelled time, give the chip with `--chip`"
        return Problem(message=message, path=module.new.path)
    return None


def _read(path: str, problems: "list[Problem]", progress: "Progress") -> "list[ReadModule]":
    from hlo_tools.diff.compare import read_module
    from hlo_tools.errors import InputError
    from hlo_tools.findings import Problem
    from hlo_tools.io import read_inputs

    progress.update("reading", path)
    modules = []
    for item in read_inputs([path]):
        try:
            if isinstance(item, InputError):
                raise item
            modules.append(read_module(item))
        except InputError as error:
            problems.append(Problem(message=error.message, path=error.path, line=error.line))
        progress.update("reading", path)
    return modules


def _write(
    comparison: "Comparison",
    file: Any,
    settings: "Settings",
    tree: Any,
    options: dict[str, Any],
) -> None:
    from dataclasses import replace

    from hlo_tools.output import write_whole
    from hlo_tools.report import diff_json, diff_text, phrases
    from hlo_tools.report.view import ReportOptions

    render = diff_json.render if options["format_name"] == "json" else diff_text.render
    view = ReportOptions(
        show_notes=settings.notes_shown, color=options["color"] == "always", sources=tree
    )
    if file is None:
        write_stdout(render(comparison, replace(view, **screen(options["color"]))))
    else:
        write_whole(file, render(comparison, view))
    if file is not None or options["format_name"] == "json":
        for problem in comparison.problems:
            complain(phrases.problem(problem))

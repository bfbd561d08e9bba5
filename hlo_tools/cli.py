"""The command `hlo-lint`.

Modules of this package are imported where they are used, so that `--version` and `--help` take no
longer than importing click.
"""

import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import click

from hlo_tools import __version__
from hlo_tools.console import (
    complain,
    option_once,
    report_failure,
    report_interrupt,
    screen,
    write_stdout,
)
from hlo_tools.report.names import FORMATS, PROFILED_FORMATS, READABLE_FORMATS

if TYPE_CHECKING:
    from hlo_tools.destinations import Destination
    from hlo_tools.errors import InputError
    from hlo_tools.findings import Outcome
    from hlo_tools.many import Means
    from hlo_tools.progress import Progress
    from hlo_tools.run import Subject
    from hlo_tools.settings import Overrides, Settings
    from hlo_tools.source import SourceTree

_NAME = "hlo-lint"
_MANY = 32
"""Files from which on they are linted in several processes, without being asked to."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs `hlo-lint` and returns its exit status.

    0 is a clean run, 1 one with findings at or above `--fail-on`, 2 wrong usage or configuration,
    input that cannot be read or an internal error, 130 an interrupt.
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    name = _NAME
    try:
        if given[:1] == ["diff"]:
            name = f"{_NAME} diff"
            return _diff(given[1:], name)
        status: int = command.main(args=given, prog_name=name, standalone_mode=False)
    except (KeyboardInterrupt, click.Abort):
        return report_interrupt()
    except Exception as error:
        return report_failure(error, name)
    return status


def _diff(arguments: list[str], name: str) -> int:
    from hlo_tools import diff_command
    from passes.catalog import BY_NAME

    status: int = diff_command.command.main(
        args=arguments, prog_name=name, standalone_mode=False, obj=BY_NAME
    )
    return status


@click.command(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.argument("paths", nargs=-1, metavar="PATH...")
@option_once("--format", "format_name", type=click.Choice(FORMATS), help="Format of the report.")
@option_once(
    "-o", "--output", metavar="FILE", help="Write the report there; `-` is standard output."
)
@click.option(
    "--report",
    "reports",
    multiple=True,
    metavar="FORMAT=FILE",
    help="Write one more report; may be repeated.",
)
@click.option(
    "--select",
    multiple=True,
    metavar="RULES",
    help="Run these rules only: names or ids, comma-separated.",
)
@click.option("--ignore", multiple=True, metavar="RULES", help="Do not run these rules.")
@option_once(
    "--fail-on",
    type=click.Choice(("error", "warning", "note", "never")),
    help="Severity from which on the exit status is 1 (default: warning).",
)
@option_once(
    "--min-saving",
    type=float,
    metavar="PERCENT",
    help="Share of a step below which a finding is a note (default: 1).",
)
@option_once(
    "--chip", metavar="NAME", help="Chip to model, for example v5e (default: as the dump tells)."
)
@option_once(
    "--source-root",
    metavar="DIR",
    help="Directory of your source (default: that of the configuration, or the current one).",
)
@option_once(
    "--config", metavar="FILE", help="Configuration (default: the nearest pyproject.toml)."
)
@click.option(
    "--aot",
    "functions",
    multiple=True,
    metavar="FUNCTION",
    help="Compile `pkg.module:function` or `file.py:function` for --topology and lint that; may be "
    "repeated.",
)
@click.option(
    "--topology",
    "topologies",
    multiple=True,
    metavar="NAME",
    help="With --aot: the TPUs to compile for, for example v5e:4x4; may be repeated.",
)
@option_once(
    "--args",
    "example",
    metavar="FUNCTION",
    help="With --aot: the function that returns the example arguments (default: "
    "`hlo_lint_example` in the same file).",
)
@option_once("--keep", metavar="DIR", help="With --aot: leave the dumps in DIR.")
@option_once(
    "--jobs",
    type=click.IntRange(min=1),
    help="Processes that lint the files of directories (default: one per processor if there are "
    "many).",
)
@option_once(
    "--dask",
    "scheduler",
    metavar="ADDRESS",
    help="Lint the files on the workers of this Dask scheduler, for example tcp://10.0.0.1:8786.",
)
@option_once(
    "--stream",
    metavar="FILE",
    help="Write a line of JSON for each file as soon as it is linted.",
)
@option_once("--explain", metavar="RULE", help="Print what a rule is about, and exit.")
@click.option("--list-rules", is_flag=True, help="Print all rules, and exit.")
@click.option("--statistics", is_flag=True, help="Add counts and seconds per rule.")
@click.option("--timings", is_flag=True, help="Print the time of each phase to standard error.")
@option_once("--baseline", metavar="FILE", help="Silence the findings that FILE holds.")
@option_once("--write-baseline", metavar="FILE", help="Write the findings to FILE, as a baseline.")
@option_once(
    "--against",
    metavar="OLD",
    help="Report only what OLD, a dump or directory of another compile, does not have.",
)
@option_once(
    "--color",
    type=click.Choice(("auto", "always", "never")),
    help="Colour the text (default: auto, on a terminal).",
)
@click.option("--show-notes", is_flag=True, help="Show findings too small for a warning.")
@click.version_option(__version__, "--version", message="hlo-lint %(version)s")
def command(paths: tuple[str, ...], **options: Any) -> int:
    """Finds what is slow in compiled XLA programs, and where in your source it comes from.

    PATH is an HLO dump (text or .hlo.pb, also gzipped), a directory of them, or `-`.

    With --aot there is no PATH: FUNCTION is imported and compiled for TPUs that need not be there.
    Its example arguments are what another function returns: a tuple of those by position, a dict
    of those by name, or a functools.partial of the function to compile with all of them. That
    function may take one argument, the list of the devices of the topology, to make a mesh of and
    shard the arguments over; jax.ShapeDtypeStruct stands for an array.

    `hlo-lint diff OLD NEW` compares two compiles of a program; see `hlo-lint diff --help`.
    """
    if options["explain"] or options["list_rules"]:
        if options["explain"] and options["list_rules"]:
            raise click.UsageError("`--explain` and `--list-rules` exclude each other")
        if paths or options["functions"]:
            raise click.UsageError("`--explain` and `--list-rules` take no PATH and no `--aot`")
        return _explain(options["explain"]) if options["explain"] else _list_rules()
    _check_aot(paths, options)
    if options["baseline"] and options["write_baseline"]:
        raise click.UsageError("`--baseline` and `--write-baseline` exclude each other")
    if options["against"]:
        if options["write_baseline"]:
            raise click.UsageError("`--against` and `--write-baseline` exclude each other")
        if options["against"] == "-" and "-" in paths:
            raise click.UsageError("standard input cannot be both OLD and PATH")
    return _lint(paths, options)


def _check_aot(paths: Sequence[str], options: dict[str, Any]) -> None:
    if not options["functions"]:
        for name in ("topologies", "example", "keep"):
            if options[name]:
                option = {"topologies": "topology", "example": "args"}.get(name, name)
                raise click.UsageError(f"`--{option}` goes with `--aot` only")
        if not paths:
            raise click.UsageError("no PATH is given")
    elif paths:
        raise click.UsageError("`--aot` takes no PATH")
    elif not options["topologies"]:
        raise click.UsageError("`--aot` needs a TPU to compile for, as `--topology v5e:2x2`")
    elif options["chip"]:
        raise click.UsageError("`--aot` and `--chip` exclude each other: the topology tells")


def _explain(rule: str) -> int:
    from hlo_tools.settings import RuleNames
    from passes.catalog import BY_ID

    found = [BY_ID[rule_id] for rule_id in RuleNames(BY_ID.values()).resolve(rule)]
    pages = (f"{rule.id} {rule.name}\n\n{rule.documentation.strip()}\n" for rule in found)
    write_stdout(("\n\n".join(pages),))
    return 0


def _list_rules() -> int:
    from passes.catalog import BY_ID

    rules = [BY_ID[rule_id] for rule_id in sorted(BY_ID)]
    width = max((len(rule.name) for rule in rules), default=0)
    write_stdout(f"{rule.id}  {rule.name:<{width}}  {rule.summary}\n" for rule in rules)
    return 0


def _lint(paths: Sequence[str], options: dict[str, Any]) -> int:
    from pathlib import Path
    from time import perf_counter

    from hlo_tools.destinations import check_writable, destinations
    from hlo_tools.hardware import chip
    from hlo_tools.progress import Progress
    from hlo_tools.report.view import exit_status
    from hlo_tools.run import lint_subjects, read_subjects
    from hlo_tools.settings import load_settings
    from hlo_tools.source import SourceTree
    from passes.catalog import BY_NAME

    started = perf_counter()
    targets = destinations(options["format_name"] or "text", options["output"], options["reports"])
    config = Path(options["config"]) if options["config"] else None
    settings = load_settings(config, _overrides(options), BY_NAME)
    if settings.chip is not None:
        chip(settings.chip)
    new_baseline = Path(options["write_baseline"]) if options["write_baseline"] else None
    if new_baseline is not None:
        check_writable(new_baseline)
    stream = Path(options["stream"]) if options["stream"] else None
    if stream is not None:
        check_writable(stream)
    means = _means(paths, options)
    tree = SourceTree.open(settings.source_root)
    progress = Progress()
    try:
        profiled = any(target.format in PROFILED_FORMATS for target in targets)
        if means is not None:
            from hlo_tools.many import lint_many

            outcome = lint_many(
                paths,
                settings,
                tree,
                means=means,
                progress=progress,
                stream=stream,
                new_baseline=new_baseline,
                profiled=profiled,
            )
        else:
            outcome = lint_subjects(
                _subjects(paths, options, progress),
                settings,
                tree,
                progress=progress,
                new_baseline=new_baseline,
                profiled=profiled,
                against=read_subjects([options["against"]]) if options["against"] else None,
            )
        progress.update("writing reports")
    finally:
        progress.clear()
    written = perf_counter()
    _write_reports(outcome, targets, settings, tree, options)
    if options["timings"]:
        ended = perf_counter()
        phases = (*outcome.timings, ("reports", ended - written), ("total", ended - started))
        for phase, seconds in phases:
            click.echo(f"{seconds:9.3f} s  {phase}", err=True)
    return exit_status(outcome, settings.fail_on)


def _means(paths: Sequence[str], options: dict[str, Any]) -> "Means | None":
    """What lints many files at a time, where that was asked for or is worth it; else `None`."""
    asked = [name for name in ("jobs", "scheduler", "stream") if options[name]]
    if options["functions"] or options["against"]:
        if asked:
            option = {"scheduler": "dask"}.get(asked[0], asked[0])
            raise click.UsageError(f"`--{option}` goes neither with `--aot` nor with `--against`")
        return None
    if options["jobs"] and options["scheduler"]:
        raise click.UsageError("`--jobs` and `--dask` exclude each other")
    if not asked and not _are_many(paths):
        return None
    from os import cpu_count

    from hlo_tools.many import Means

    return Means(jobs=options["jobs"] or cpu_count() or 1, scheduler=options["scheduler"])


def _are_many(paths: Sequence[str]) -> bool:
    """Whether the paths may hold so many files that starting further processes pays."""
    from itertools import islice
    from pathlib import Path

    if not any("://" in path or Path(path).is_dir() for path in paths) and len(paths) < _MANY:
        return False
    from hlo_tools.io import list_inputs

    files = (file for listing in list_inputs(paths) for file in listing.files)
    return len(list(islice(files, _MANY))) == _MANY


def _subjects(
    paths: Sequence[str], options: dict[str, Any], progress: "Progress"
) -> "Iterator[Subject | InputError]":
    """What the user names, ready to be linted."""
    if not options["functions"]:
        from hlo_tools.run import read_subjects

        progress.update("reading", paths[0])
        return read_subjects(paths)
    from pathlib import Path

    from hlo_tools.aot.compiling import Compilation, require_compiler
    from hlo_tools.aot.subjects import compiled_subjects
    from hlo_tools.aot.targets import parse_target, parse_topology

    topologies = dict.fromkeys(parse_topology(name) for name in options["topologies"])
    targets = dict.fromkeys(parse_target(name, "--aot") for name in options["functions"])
    require_compiler()
    keep = Path(options["keep"]) if options["keep"] else None
    compilations = [
        Compilation(target=target, example=options["example"], topology=topology)
        for target in targets
        for topology in topologies
    ]
    return compiled_subjects(compilations, keep, progress)


def _overrides(options: dict[str, Any]) -> "Overrides":
    from pathlib import Path

    from hlo_tools.settings import Overrides

    def path(name: str) -> Path | None:
        return Path(options[name]) if options[name] else None

    return Overrides(
        select=_rule_list("--select", options["select"]),
        ignore=_rule_list("--ignore", options["ignore"]),
        fail_on=options["fail_on"],
        min_saving=options["min_saving"],
        chip=options["chip"],
        source_root=path("source_root"),
        baseline=path("baseline"),
        show_notes=options["show_notes"] or None,
    )


def _rule_list(option: str, values: Sequence[str]) -> tuple[str, ...] | None:
    if not values:
        return None
    names = tuple(name.strip() for value in values for name in value.split(",") if name.strip())
    if not names:
        raise click.UsageError(f"`{option}` names no rule")
    return names


def _write_reports(
    outcome: "Outcome",
    targets: "Sequence[Destination]",
    settings: "Settings",
    tree: "SourceTree",
    options: dict[str, Any],
) -> None:
    from dataclasses import replace

    from hlo_tools.output import write_whole
    from hlo_tools.report import phrases
    from hlo_tools.report.formats import render
    from hlo_tools.report.view import ReportOptions, tally

    base = ReportOptions(
        show_notes=settings.notes_shown,
        fail_on=settings.fail_on,
        statistics=options["statistics"],
        color=options["color"] == "always",
        sources=tree,
    )
    # Files first: that a report cannot be written should not scroll away above another one.
    for target in sorted(targets, key=lambda target: target.file is None):
        if target.file is not None:
            write_whole(target.file, render(target.format, outcome, base))
        else:
            shown = replace(base, **screen(options["color"]))
            write_stdout(render(target.format, outcome, shown))
    if not any(target.on_screen for target in targets):
        for problem in outcome.problems:
            complain(phrases.problem(problem))
    if options["statistics"] and not READABLE_FORMATS & {target.format for target in targets}:
        for line in phrases.statistics(tally(outcome, settings.fail_on)):
            complain(line)

"""The command `triton2pallas`.

Modules of this package, jax and Triton are imported where they are used, so that `--version` and
`--help` take no longer than importing click.

docs/triton2pallas.md says what `--format json` writes.
"""

import math
import os
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import click

from hlo_tools import __version__
from hlo_tools.console import (
    EXIT_DONE,
    EXIT_ERROR,
    complain,
    option_once,
    report_failure,
    report_interrupt,
    write_stdout,
)

if TYPE_CHECKING:
    from pathlib import Path

    from translators.command.launching import Request
    from translators.command.outcome import Outcome
    from translators.verify.ladder import Settings

_NAME = "triton2pallas"
_EMITTERS = ("auto", "pallas", "jax", "stablehlo", "graph")
CHIPS = ("v4", "v5e", "v5p", "v6e", "7x")
"""The TPU generations that can be compiled for."""
# What the extra `triton` installs.
_NEEDED = frozenset({"jax", "jaxlib", "ml_dtypes", "numpy", "triton"})
_LAUNCH_HINT = (
    "say how to launch it: --launch 'FUNCTION(f32[1000], ...)' calls a function of the file, "
    "--kernel, --arg, --constexpr and --grid launch a kernel; see `triton2pallas --help`"
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs `triton2pallas` and returns its exit status.

    0 is translated and verified, 1 refused or not equal, 2 wrong usage, input that cannot be used
    or an internal error, 130 an interrupt.
    """
    try:
        status: int = command.main(args=arguments, prog_name=_NAME, standalone_mode=False)
    except (KeyboardInterrupt, click.Abort):
        return report_interrupt()
    except Exception as error:
        if isinstance(error, ModuleNotFoundError) and error.name in _NEEDED:
            complain(f"error: `{error.name}` is not installed: `pip install 'hlo-tools[triton]'`")
            return EXIT_ERROR
        return report_failure(error, _NAME)
    return status


@click.command(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.argument("path", metavar="PATH")
@click.option(
    "--launch",
    "calls",
    multiple=True,
    metavar="CALL",
    help="Call a function of the file and translate what it launches, as in "
    "'add(f32[1000], f32[1000], 0.5)'; may be repeated.",
)
@option_once(
    "--kernel",
    metavar="NAME",
    help="The kernel to launch; with --launch, the only one to translate.",
)
@click.option(
    "--arg",
    "arguments",
    multiple=True,
    metavar="NAME=VALUE",
    help="An argument of the kernel: an array as x=f32[4,8], or x=f32[4,8]:[1,4] with strides in "
    "elements, a number as n=1000 or n=1000:i64, or out=x for the memory of x.",
)
@click.option(
    "--constexpr",
    "constants",
    multiple=True,
    metavar="NAME=VALUE",
    help="A constexpr of the kernel, as BLOCK=256.",
)
@option_once("--grid", metavar="X[,Y[,Z]]", help="Programs along each axis.")
@option_once(
    "--config",
    type=click.IntRange(min=0),
    metavar="N",
    help="Which of an autotuner's configurations to take, counted from 0 (default: 0).",
)
@option_once(
    "--emit",
    type=click.Choice(_EMITTERS),
    help="What to write (default: auto, which is a kernel in Pallas where one can be written, is "
    "verified and compiles, and else JAX).",
)
@click.option(
    "--block",
    "blocks",
    multiple=True,
    metavar="NAME=VALUE",
    help="How long the blocks of a kernel in Pallas are along a dimension, as rows=256; may be "
    "repeated.",
)
@click.option(
    "--chip",
    "chips",
    multiple=True,
    type=click.Choice(CHIPS),
    help="A TPU generation that what is emitted has to compile for; may be repeated (default: "
    "v5e, v6e and 7x are tried, and Pallas has to compile for the first two).",
)
@option_once("-o", "--output", metavar="FILE", help="Write there, whole or not at all.")
@click.option("--explain", is_flag=True, help="Print how each load and store was understood.")
@click.option("--check", is_flag=True, help="Translate and verify, write nothing.")
@click.option("--list", "list_kernels", is_flag=True, help="Print the kernels of the file.")
@click.option("--no-verify", is_flag=True, help="Do not verify.")
@click.option(
    "--grad",
    is_flag=False,
    flag_value="",
    metavar="[BACKWARD]",
    help="Verify gradients too: jax.grad against finite differences, or the launched kernel "
    "BACKWARD against jax.vjp of the other one.",
)
@option_once("--format", "format_name", type=click.Choice(("text", "json")), help="Of the report.")
@option_once("--seed", type=click.IntRange(min=0), metavar="N", help="Of the inputs (default: 0).")
@option_once(
    "--tolerance",
    type=click.FloatRange(min=0.0, max=1.0),
    metavar="FRACTION",
    help="How far elements may differ, of the greatest in the array (default: what the kernel's "
    "own rounding explains).",
)
@click.version_option(__version__, "--version", message="triton2pallas %(version)s")
def command(path: str, **options: Any) -> int:
    """Translates Triton kernels to Pallas, JAX or StableHLO, and verifies them.

    PATH is a Python file with Triton kernels, or Triton IR (.ttir). A Python file is imported and
    its functions are run, as by any test runner: do not give files that you do not trust. No GPU
    is needed, and kernels are not run on one.

    \b
      triton2pallas add.py --launch 'add(f32[98432], f32[98432])' -o add_tpu.py
      triton2pallas add.py --kernel add_kernel --arg x=f32[1000] --arg n=1000
                           --constexpr BLOCK=256 --grid 4

    What is emitted goes to FILE or to standard output, the report then to standard error. Nothing
    is written unless every launch is translated and verified. The exit status is 0 then, 1 when
    one is refused or not equal, 2 for wrong usage or input that cannot be used.
    """  # noqa: D301  (what keeps the lines of the example apart is the character itself)
    _check_usage(options)
    _prepare_environment()
    from translators.command.launching import Request

    request = Request(
        path=_path(path),
        calls=options["calls"],
        kernel=options["kernel"],
        backward=options["grad"] or None,
        arguments=options["arguments"],
        constants=options["constants"],
        grid=options["grid"],
        configuration=options["config"] or 0,
    )
    if options["list_kernels"] or not request.names_launch:
        return _list(request, options)
    return _translate(request, options)


def _check_usage(options: dict[str, Any]) -> None:
    """Refuses options that contradict one another.

    Raises:
      click.UsageError: some do.
    """
    explicit = ("kernel", "arguments", "constants", "grid")
    if options["blocks"] and options["emit"] not in (None, "auto", "pallas"):
        raise click.UsageError(f"`--emit {options['emit']}` takes no `--block`")
    _blocks(options)
    if options["tolerance"] is not None and math.isnan(options["tolerance"]):
        raise click.UsageError("`--tolerance` is not a number")
    if options["calls"] and any(options[name] for name in explicit[1:]):
        raise click.UsageError("`--launch` excludes `--arg`, `--constexpr` and `--grid`")
    if options["list_kernels"]:
        if options["calls"] or any(options[name] for name in explicit):
            raise click.UsageError("`--list` takes no launch")
        if options["check"] or options["explain"] or options["output"]:
            raise click.UsageError("`--list` excludes `--check`, `--explain` and `--output`")
    if options["check"] and options["output"]:
        raise click.UsageError("`--check` writes nothing, so it excludes `--output`")
    if options["no_verify"] and (options["check"] or options["grad"] is not None):
        raise click.UsageError("`--no-verify` excludes `--check` and `--grad`")
    if options["no_verify"] and options["chips"]:
        raise click.UsageError("`--no-verify` compiles nothing, so it excludes `--chip`")


def _blocks(options: dict[str, Any]) -> dict[str, int]:
    """The lengths of blocks, by the name of the dimension.

    Raises:
      click.UsageError: one is not given as it has to be.
    """
    found: dict[str, int] = {}
    for text in options["blocks"]:
        name, _, number = (part.strip() for part in text.partition("="))
        if not name.isidentifier() or not number.isdecimal() or int(number) == 0:
            raise click.UsageError(f"`--block {text}` is not of the form NAME=VALUE, as rows=256")
        if name in found:
            raise click.UsageError(f"`--block {name}=...` is given twice")
        found[name] = int(number)
    return found


def _prepare_environment() -> None:
    """Settles what jax and Triton ask the environment when they are imported."""
    # The proof runs on the CPU; looking for other devices takes long and tells of their absence.
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "1")
    # Whether GPUs fuse, of which Triton warns, is of no concern to its front end.
    os.environ.setdefault("TRITON_DEFAULT_FP_FUSION", "1")


def _path(text: str) -> "Path":
    from pathlib import Path

    return Path(text)


def _list(request: "Request", options: dict[str, Any]) -> int:
    """Prints the kernels of the file; without `--list` that is because no launch is given."""
    from hlo_tools.errors import InputError
    from translators.command.host_output import held_output
    from translators.command.launching import load, read_graph
    from translators.command.listing import listed_graph, listed_kernels, only_kernel

    try:
        with held_output():
            if request.is_ttir:
                kernels = [listed_graph(read_graph(request.path), request.path)]
            else:
                kernels = listed_kernels(load(request.path))
            if request.kernel is not None:
                kernels = [only_kernel(kernels, request.kernel, request.path)]
    except InputError as error:
        return _unusable(request, options, error)
    status = EXIT_DONE if options["list_kernels"] else EXIT_ERROR
    if options["format_name"] == "json":
        from translators.command.json import listing_json

        write_stdout(listing_json(request.path, kernels, status))
    else:
        from translators.command.text import listing_lines

        _print(listing_lines(request.path, kernels))
    if status != EXIT_DONE and kernels:
        complain(_LAUNCH_HINT)
    return status


def _translate(request: "Request", options: dict[str, Any]) -> int:
    from hlo_tools.destinations import check_writable
    from hlo_tools.errors import InputError
    from hlo_tools.output import write_whole
    from hlo_tools.progress import Progress
    from translators.command.host_output import held_output

    target = _target(request, options)
    if target is not None:
        check_writable(target)
    only_explain = options["explain"] and target is None and not options["check"]
    progress = Progress()
    try:
        with held_output():
            outcome = _outcome(request, options, progress, verify=not only_explain)
    except InputError as error:
        progress.clear()
        return _unusable(request, options, error)
    finally:
        progress.clear()
    if target is not None and outcome.text:
        from dataclasses import replace

        write_whole(target, (outcome.text,))
        outcome = replace(outcome, output=str(target))
    _report(outcome, options, emits=target is None and not options["check"])
    return outcome.exit_status


def _target(request: "Request", options: dict[str, Any]) -> "Path | None":
    """The file to write; `None` for standard output."""
    if options["output"] in (None, "-"):
        return None
    target = _path(options["output"])
    if target.resolve() == request.path.resolve():
        raise click.UsageError("`--output` is the file to translate")
    return target


def _outcome(
    request: "Request", options: dict[str, Any], progress: Any, *, verify: bool
) -> "Outcome":
    """What becomes of the launches that are asked for.

    Raises:
      InputError: the file or the launches cannot be used.
    """
    from translators.command.launching import tasks
    from translators.command.outcome import Outcome
    from translators.command.translating import Wishes, translate_all

    progress.update("loading", str(request.path))
    emit = options["emit"] or "auto"
    wishes = Wishes(
        emit=emit,
        blocks=_blocks(options),
        explain=options["explain"],
        verify=_settings(options) if verify and not options["no_verify"] else None,
        gradients=options["grad"] is not None,
        backward=request.backward,
        step=progress.update,
    )
    kernels, text = translate_all(tasks(request), wishes)
    good = all(each.good for each in kernels)
    return Outcome(path=str(request.path), emit=emit, kernels=kernels, text=text if good else "")


def _settings(options: dict[str, Any]) -> "Settings":
    from translators.verify.ladder import Settings

    return Settings(
        seed=options["seed"] or 0,
        tolerance=options["tolerance"],
        chips=tuple(dict.fromkeys(options["chips"])),
    )


def _unusable(request: "Request", options: dict[str, Any], error: Any) -> int:
    """Says why the file or the launches cannot be used."""
    from translators.command.outcome import Outcome
    from translators.command.translating import problem_of

    outcome = Outcome(path=str(request.path), emit="", problems=(problem_of(error),))
    _report(outcome, options, emits=True)
    return outcome.exit_status


def _report(outcome: "Outcome", options: dict[str, Any], *, emits: bool) -> None:
    """Writes the report, and what was emitted to standard output if it goes there."""
    if options["format_name"] == "json":
        from translators.command.json import report_json

        write_stdout(report_json(outcome))
        return
    from translators.command.text import explanation_lines, report_lines

    if options["explain"]:
        _print(explanation_lines(outcome))
        emits = emits and bool(outcome.problems)
    if emits:
        write_stdout((outcome.text,))
        for line in report_lines(outcome):
            complain(line)
    else:
        _print(report_lines(outcome))


def _print(lines: Iterable[str]) -> None:
    from hlo_tools.report.escape import visible

    write_stdout(f"{visible(line)}\n" for line in lines)

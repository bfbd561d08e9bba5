"""The file names of an XLA dump folder: which module, which stage, text or proto.

`--xla_dump_to` writes `module_0001.jit_f.STAGE.txt`, on TPU `module_0001.jit_f.cl_123.STAGE.txt`,
beside it reports on the same module, and with `--xla_dump_hlo_pass_re` one stage a pass:
`module_0001.jit_f.0007.PIPELINE.after_X.before_Y.txt` (names: xla/service/dump.cc, and folders
written by jaxlib 0.10 and libtpu 0.0.52).
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

# Stages of a finished compile, best first. On TPU `after_codegen` is what `as_text()` of the
# compiled program shows: the stages before it lack some cycle estimates and window sizes.
_FINAL_STAGES = (
    "after_codegen",
    "after_optimizations",
    "after_optimizations_after_buffer_assignment",
    "after_optimizations_before_buffer_assignment",
)

# Compiled on first use: reading a file that is named needs none of them.
_FORM = r"(?P<form>\.hlo\.pb|\.pb|\.hlo\.txt|\.txt|\.hlo)?(?:\.gz)?$"
_NUMBER = r"(?:.*[^a-zA-Z0-9])?module_\d+"
# The platform stands before the stage: `cpu_`, `gpu_`, `sm_9.0_gpu_`, `gfx942_gpu_`.
_FINAL = (
    rf"(?P<module>{_NUMBER}(?:\..+?)?)\.(?:[a-z][a-z0-9]*_(?:[\d.]+[a-z]?_)?(?:gpu_)?)?"
    rf"(?P<stage>{'|'.join(_FINAL_STAGES)})"
)
_BEFORE = rf"(?P<module>{_NUMBER}(?:\..+?)?)\.before_optimizations"
_PASS = rf"(?P<module>{_NUMBER}.*)\.(?P<pass>\d{{4,}})\..*?\b(?:after|before)_.+"

_REPORTS = {
    "-buffer-assignment": "a buffer assignment",
    "-buffer-assignment-values": "a list of the values of a buffer assignment",
    "-live-range": "a live range listing",
    "-memory-usage-report": "a memory usage report",
    ".thunk_sequence": "a thunk sequence",
    ".thunk_sequence_after_thunk_passes": "a thunk sequence",
    ".thunk_metadata": "a listing of thunks",
    ".debug_options": "a listing of debug options",
    ".hlo_module_config": "a module configuration",
    ".execution_options": "a listing of execution options",
    ".flagfile": "a flag file",
    ".tpu_comp_env": "a compiler environment",
    ".target_arguments": "a description of the compile target",
    ".transfer_stats": "a listing of transfer statistics",
    ".basic_compiler_metadata": "compiler metadata",
    ".autotune_results": "a listing of autotuning results",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Dump:
    """One stage of one module.

    Attributes:
      module: the part of the name that all stages of the module share.
      rank: higher is later in the compile; of one stage, text is above proto.
    """

    module: str
    rank: tuple[int, int, bool]


def select_modules(names: Iterable[str]) -> list[str]:
    """The files of one directory that are worth opening, sorted.

    Of every module of an XLA dump its last stage remains, as text where there is one; reports
    and other by-products of the dump are left out. Files that are no part of a dump all remain,
    unless the same name stands there as text too.
    """
    best: dict[str, tuple[tuple[int, int, bool], str]] = {}
    others: list[str] = []
    for name in sorted(names):
        dump = _stage(*_split_form(name))
        if dump is not None:
            if dump.module not in best or dump.rank > best[dump.module][0]:
                best[dump.module] = (dump.rank, name)
        elif report_kind(name) is None:
            others.append(name)

    dumped = {found[0] for module in best if (found := re.match(_NUMBER, module))}
    selected = [name for _, name in best.values()]
    texts = {base for base, is_text in map(_split_form, others) if is_text}
    for name in others:
        number = re.match(_NUMBER, name)
        base, is_text = _split_form(name)
        if (number is None or number[0] not in dumped) and (is_text or base not in texts):
            selected.append(name)
    return sorted(selected)


def report_kind(name: str) -> tuple[str, str] | None:
    """What a report of an XLA dump is, and the name of the dump that it is about.

    Returns:
      A phrase such as `a buffer assignment` and the name of the module's text beside it, or
      `None` where the name is not that of such a report.
    """
    base, _ = _split_form(name)
    for ending, kind in _REPORTS.items():
        if base.endswith(ending):
            about = base.removesuffix(ending)
            if not ending.startswith("-"):
                about += ".after_optimizations"
            return kind, about + ".txt"
    return None


def _split_form(name: str) -> tuple[str, bool]:
    """The name without what tells its form, and whether that form is text."""
    form = re.search(_FORM, name)
    assert form is not None  # every part of the pattern is optional
    return name[: form.start()], not (form["form"] or "").endswith(".pb")


def _stage(base: str, is_text: bool) -> _Dump | None:
    if found := re.fullmatch(_FINAL, base):
        return _Dump(
            module=found["module"], rank=(2, -_FINAL_STAGES.index(found["stage"]), is_text)
        )
    if found := re.fullmatch(_BEFORE, base):
        return _Dump(module=found["module"], rank=(0, 0, is_text))
    if found := re.fullmatch(_PASS, base):
        return _Dump(module=found["module"], rank=(1, int(found["pass"]), is_text))
    return None

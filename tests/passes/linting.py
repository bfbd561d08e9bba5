"""How the tests of rules lint a text: every rule, a chip of choice, paths that exist nowhere."""

import gzip
from pathlib import Path

from hlo_tools.analysis.memory_refusal import MemoryRefusal
from hlo_tools.findings import Severity
from hlo_tools.settings import Settings
from passes.catalog import BY_ID
from passes.runner import ModuleResult, lint_text

ROOT = Path(__file__).resolve().parent.parent.parent
HEADER = "HloModule jit_f, is_scheduled=true, num_partitions=8\n\n"


def read_dump(path: Path) -> str:
    """The text of a dump, unpacked where it is gzipped."""
    data = path.read_bytes()
    return (gzip.decompress(data) if data.startswith(b"\x1f\x8b") else data).decode()


def settings(*, chip: str | None = None, select: tuple[str, ...] = ()) -> Settings:
    """All rules, or those selected by id, with everything else as it is by default."""
    return Settings(select=select or tuple(sorted(BY_ID)), source_root=ROOT, chip=chip)


def lint(
    text: str,
    *,
    chip: str | None = None,
    select: tuple[str, ...] = (),
    refusal: MemoryRefusal | None = None,
) -> ModuleResult:
    """Lints a text with all rules, or those selected by id."""
    return lint_text(
        text,
        path="dump.txt",
        settings=settings(chip=chip, select=select),
        refusal=refusal,
    )


def warned(text: str, rule: str, chip: str = "v5e") -> bool:
    """Whether a rule gives a warning or an error on computations written by hand."""
    found = lint(HEADER + text, chip=chip, select=(rule,)).findings
    return any(finding.severity >= Severity.WARNING for finding in found)


def program(
    body: str,
    *,
    helpers: str = "",
    parameters: int = 2,
    shape: str = "f32[8192,8192]{1,0:T(8,128)}",
) -> str:
    """An entry computation over parameters p0, p1, ... of one type; `body` ends with its ROOT."""
    lines = "\n".join(f"  %p{n} = {shape} parameter({n})" for n in range(parameters))
    signature = ", ".join(f"p{n}: f32[1]" for n in range(parameters))
    return f"{helpers}ENTRY %main ({signature}) -> f32[1] {{\n{lines}\n{body}\n}}\n"

"""How the tests of rules lint a text: every rule, a chip of choice, paths that exist nowhere."""

import gzip
from pathlib import Path

from hlo_tools.analysis.memory_refusal import MemoryRefusal
from hlo_tools.settings import Settings
from passes.catalog import BY_ID
from passes.runner import ModuleResult, lint_text

ROOT = Path(__file__).resolve().parent.parent.parent


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

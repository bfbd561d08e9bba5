"""What an input is when it is not HLO: said in the user's words, with what to give instead."""

import re
from pathlib import PurePath

from hlo_tools.errors import InputError
from hlo_tools.reading import dump_names, proto
from hlo_tools.reading.streams import HEAD_BYTES
from hlo_tools.reading.text import is_utf16


class NotHloError(InputError):
    """An input that is something else than HLO."""


_MAGIC = (
    (b"\x1f\x8b", "a gzip file inside a gzip file"),
    (b"\x28\xb5\x2f\xfd", "a zstd file"),
    (b"\xfd7zXZ\0", "an xz file"),
    (b"BZh", "a bzip2 file"),
    (b"PK\x03\x04", "a zip archive"),
    (b"\x7fELF", "an ELF object"),
    (b"\xcf\xfa\xed\xfe", "a Mach-O object"),
    (b"\x89PNG", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"%PDF", "a PDF document"),
    (b"BC\xc0\xde", "LLVM bitcode"),
    (b"ML\xefR", "MLIR bytecode, such as a serialized StableHLO module"),
    (b"\x93NUMPY", "a NumPy array"),
    (b"\x89HDF", "an HDF5 file"),
    (b"SQLite format 3\0", "an SQLite database"),
)
# Escape, form feed and vertical tab occur in logs; the others in no text.
_CONTROL = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f]")

_COMPILED = "give the compiled form, for example `jax.jit(f).lower(...).compile().as_text()`"
_DUMPED = "give the `*.after_optimizations.txt` beside it"
_LLO = "TPU low-level code (LLO)"
_LLO_MODULE = "give the `*-hlo.txt` beside it"

# The first pattern found in the beginning of a text names it; `^` is the start of any line. They
# are compiled only when a text turns out not to be HLO.
_TEXT_KINDS = (
    (r"\A\s*BufferAssignment:", "a buffer assignment", _DUMPED),
    (
        r"\A\s*Total bytes used: .*\n\s*Used values:",
        "a list of the values of a buffer assignment",
        _DUMPED,
    ),
    (r"\A\s*HloLiveRange \(", "a live range listing", _DUMPED),
    (r"\A\s*(?:Memory Space: |cumulative_size;)", "a memory usage report", _DUMPED),
    (r"\A\s*\d+: k[A-Z]\w+\t", "a thunk sequence", _DUMPED),
    (r"\A\s*--?xla_\w+=", "a flag file", _DUMPED),
    (r"\A\s*xla_\w+: ", "a listing of compiler options", _DUMPED),
    (r"\A// \[Enable stack traces via -xla_jf", _LLO, _LLO_MODULE),
    (r"\A\s*= control target key start", _LLO + " bundles", _LLO_MODULE),
    (r"\A\s*(?:0x)?[0-9a-f]+\s+(?:[A-Z]{2}:?\s*)?: *>* *\{", _LLO + " bundles", _LLO_MODULE),
    (r"\A\s*\$region\d+:", _LLO, _LLO_MODULE),
    (r"\A\s*Schedule analysis:", "an analysis of a schedule of " + _LLO, _LLO_MODULE),
    (r"\A== CAPACTIY:", "a table of the use of TPU slots", _LLO_MODULE),
    (r"\A\s*HLO:\n\s+operation: ", "a table of HLO instructions and bundles", _LLO_MODULE),
    (
        r"^(?:hlo_module|computations) +\{|^entry_computation_name: ",
        "an HLO proto in protobuf text format",
        "give HLO text",
    ),
    (r"\A\s*\{ *\n? *\"|\A\s*\[\s*(?:\{|\]|\")", "JSON", None),
    (r"\A\s*(?:<!DOCTYPE html|<html)", "HTML", None),
    (r"\A\s*<\?xml", "XML", None),
    (r"\A\s*digraph\b", "a Graphviz graph", None),
    (
        r"\A#!.*\bpython|^(?:import \w+|from [\w.]+ import |def \w+\(|class \w+[(:])",
        "Python source",
        _COMPILED,
    ),
    (r"^#include [<\"]", "C++ source", None),
    (r"\bstablehlo\.", "StableHLO (MLIR)", _COMPILED),
    (r"\b(?:mhlo|chlo)\.", "MHLO (MLIR)", _COMPILED),
    (r"^[ \t]*+tt\.func\b", "Triton IR (MLIR)", None),
    (r"^[ \t]*+(?:module\b.*\{|func\.func\b|#\w+ = #\w+\.|#loc)", "MLIR", _COMPILED),
    (r"\A\s*\{ ?lambda\b", "a jaxpr", _COMPILED),
    (r"^target triple = |^; ModuleID = ", "LLVM IR", None),
    (r"^\.version \d+\.\d+\n\.target ", "PTX", None),
    (
        r"^[IWEF]\d{4} \d\d:\d\d:\d\d\.\d|^\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d|"
        r"^Traceback \(most recent call last\)|^=+ test session starts =+",
        "a log with no HLO module in it",
        None,
    ),
)
# More of the bytes of a damaged text than this are valid UTF-8.
_MAX_INVALID_SHARE = 0.1
# The beginning of a text that tells what it is.
TEXT_HEAD_CHARACTERS = 16 << 10


def is_module_proto(data: bytes | bytearray) -> bool:
    """Whether these bytes, or a whole of which they are the beginning, are an HLO module proto.

    A text may start with the same byte as a proto, but has none of the control characters that
    lengths and numbers are.
    """
    return _CONTROL.search(data[:HEAD_BYTES]) is not None and proto.holds_module(data)


def refuse_foreign_bytes(head: bytes, *, path: str) -> None:
    """Raises where the beginning of an input is neither text nor an HLO module proto.

    Raises:
      NotHloError: it says what the input is.
    """
    if not head:
        raise NotHloError("this is empty", path=path)
    kind = next((kind for magic, kind in _MAGIC if head.startswith(magic)), None)
    if kind is None:
        if is_utf16(head) or proto.holds_module(head):
            return
        kind = proto.foreign_kind(head) if _CONTROL.search(head) else None
    if kind is None and _is_binary(head):
        is_proto = PurePath(path).suffix == ".pb"
        kind = "a protocol buffer of another kind" if is_proto else "a binary file"
    if kind is not None:
        raise NotHloError(f"this is {kind}, not HLO", path=path)


def _is_binary(head: bytes) -> bool:
    if b"\0" in head and b"HloModule" not in head:
        return True
    invalid = head.decode("utf-8", errors="replace").count("\ufffd")
    return invalid > len(head) * _MAX_INVALID_SHARE


def not_hlo(head: str, *, path: str) -> NotHloError:
    """The error for a text in which no module was found.

    Args:
      head: its first `TEXT_HEAD_CHARACTERS`.
      path: named in the error; what XLA calls its reports helps where the text does not tell.
    """
    report = dump_names.report_kind(PurePath(path).name)
    kind, advice = next(
        (
            (kind, advice)
            for pattern, kind, advice in _TEXT_KINDS
            if re.search(pattern, head, re.MULTILINE)
        ),
        (report[0], _DUMPED) if report is not None else (None, None),
    )
    if kind is None:
        message = (
            "this text holds no HLO module: no line starts with `HloModule`, `ENTRY` or a "
            "computation"
            if head.strip()
            else "this is nothing but blank lines"
        )
        return NotHloError(message, path=path)
    if report is not None and advice is _DUMPED:
        advice = f"give `{report[1]}` beside it"
    return NotHloError(f"this is {kind}, not HLO{'; ' + advice if advice else ''}", path=path)

"""What is not HLO is told for what it is, with what to give instead."""

import io
import json
import zipfile
from pathlib import Path

import pytest
from inputs import SMALL, message, read, read_named

from hlo_tools.reading.proto import foreign_kind

COMPILED = "compile().as_text()"


def zip_archive() -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("dump.txt", SMALL)
    return packed.getvalue()


def field(number: int, payload: bytes) -> bytes:
    """One length-delimited field of a protocol buffer."""
    return bytes([number << 3 | 2]) + bytes([len(payload)]) + payload


XSPACE = field(1, b"\x08\x01" + field(2, b"/host:CPU") + b"\x00\x01")
GRAPH = field(1, field(1, b"x") + field(2, b"Placeholder") + field(5, b"\x00\x01"))


@pytest.mark.parametrize(
    ("content", "kind", "advice"),
    [
        (b"", "empty", ""),
        (b" \n\n\t", "nothing but blank lines", ""),
        ("BufferAssignment:\nallocation 0: size 512\n", "a buffer assignment", "beside it"),
        ("HloLiveRange (max 26):\n  InstructionSequence:\n", "a live range listing", "beside it"),
        ("Memory Space: default (color=0)\n", "a memory usage report", "beside it"),
        ("\nTotal bytes used: 8 (8B)\n\nUsed values:\n", "values of a buffer assign", "beside it"),
        ("000: kKernel\tfusion\n", "a thunk sequence", "beside it"),
        ("xla_dump_compact_gte: false\n", "compiler options", "beside it"),
        ("--xla_all_gather=256\n", "a flag file", "beside it"),
        ("$region0: #{fusion}\n  #allocation4 [shape]\n", "low-level code (LLO)", "-hlo.txt"),
        ("= control target key start\nLH: loop header\n", "(LLO) bundles", "-hlo.txt"),
        ("     0   :  { %s1 = sld [smem:[#a]] }\n", "(LLO) bundles", "-hlo.txt"),
        ("Schedule analysis:\n", "an analysis of a schedule", "-hlo.txt"),
        ("HLO:\n  operation: %p = f32[] parameter()\n", "a table of HLO instr", "-hlo.txt"),
        (
            "module @jit_f {\n  func.func @main(%a: tensor<f32>) {\n    stablehlo.return %a\n",
            "StableHLO (MLIR)",
            COMPILED,
        ),
        ("module {\n  %0 = mhlo.add %a, %a : tensor<f32>\n", "MHLO (MLIR)", COMPILED),
        ("#loc = loc(unknown)\nmodule {\n  tt.func public @k() {\n", "Triton IR (MLIR)", ""),
        ("module attributes {a = 1} {\n  llvm.func @f()\n}\n", "MLIR", COMPILED),
        ("{ lambda ; a:f32[8]. let b = add a a in (b,) }\n", "a jaxpr", COMPILED),
        ("hlo_module {\n  name: 'x'\n}\n", "protobuf text format", "give HLO text"),
        (json.dumps({"version": 1}), "JSON", ""),
        (json.dumps([{"hlo": SMALL}]), "JSON", ""),
        ("<!DOCTYPE html>\n<html>", "HTML", ""),
        ("<?xml version='1.0'?>", "XML", ""),
        ("digraph {\n", "a Graphviz graph", ""),
        ("#!/usr/bin/env python3\nprint(1)\n", "Python source", COMPILED),
        ("import jax\n\ndef f(x):\n  return stablehlo.add(x)\n", "Python source", COMPILED),
        ("// x\n#include <vector>\n", "C++ source", ""),
        ("; ModuleID = 'x'\ntarget triple = \"x\"\n", "LLVM IR", ""),
        ("I0000 00:00:00.000000 1 a.cc:1] started\n", "a log with no HLO", ""),
        (b"ML\xefR\x0dStableHLO_v1.0.0\x00", "MLIR bytecode", ""),
        (b"\x7fELF\x02\x01\x01\x00", "an ELF object", ""),
        (zip_archive(), "a zip archive", ""),
        (b"\x89PNG\r\n\x1a\n\x00", "a PNG image", ""),
        (b"\x28\xb5\x2f\xfd\x04", "a zstd file", ""),
        (XSPACE, "a profile (XSpace", ""),
        (GRAPH, "a TensorFlow graph", ""),
        (b"a\0b", "a binary file", ""),
        ("some words\n", "no line starts with `HloModule`", ""),
    ],
)
def test_other_kinds_are_named(content: str | bytes, kind: str, advice: str) -> None:
    found = message(read(content))
    assert kind in found
    assert advice in found


def test_a_report_names_the_dump_beside_it(tmp_path: Path) -> None:
    stem = "module_0003.jit_f.sm_9.0_gpu_after_optimizations"
    items = read_named(tmp_path, f"{stem}-buffer-assignment.txt", "BufferAssignment:\n")
    assert message(items) == f"this is a buffer assignment, not HLO; give `{stem}.txt` beside it"


def test_a_report_that_looks_like_nothing_is_known_by_its_name(tmp_path: Path) -> None:
    items = read_named(tmp_path, "module_0001.jit_f.transfer_stats.txt", "host_dma_sizes {\n}\n")
    assert message(items).startswith("this is a listing of transfer statistics, not HLO; give ")


def test_a_protocol_buffer_of_another_kind_is_told_by_its_name(tmp_path: Path) -> None:
    items = read_named(tmp_path, "topology.pb", b"\x12\x02\x08\x00")
    assert message(items) == "this is a protocol buffer of another kind, not HLO"


@pytest.mark.parametrize("cut", range(len(XSPACE)))
def test_cut_off_protos_are_no_trouble(cut: int) -> None:
    assert foreign_kind(XSPACE[:cut]) in (None, "a profile (XSpace, `*.xplane.pb`)")

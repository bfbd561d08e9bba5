"""No op of Triton IR's dialects is forgotten, and the page about them is current."""

import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

from translators.graph.ops.catalog import OPS
from translators.graph.ops.refused import READ_AS, REFUSED

ROOT = Path(__file__).resolve().parent.parent.parent


@pytest.fixture(scope="module")
def op_table() -> ModuleType:
    pytest.importorskip("jaxlib.triton")
    spec = importlib.util.spec_from_file_location("op_table", ROOT / "benchmarks" / "op_table.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    path = list(sys.path)
    spec.loader.exec_module(module)
    sys.path[:] = path
    return module


@pytest.mark.parametrize("dialect", ["tt", "arith", "math", "scf", "cf"])
def test_every_op_of_a_dialect_is_accounted_for(dialect: str, op_table: ModuleType) -> None:
    names = op_table.dialect_ops(dialect)
    assert names
    assert [name for name in names if name not in {*OPS, *REFUSED, *READ_AS}] == []


def test_no_op_is_treated_in_two_ways() -> None:
    assert len({*OPS, *REFUSED, *READ_AS}) == len(OPS) + len(REFUSED) + len(READ_AS)


def test_the_page_is_what_the_script_writes(op_table: ModuleType) -> None:
    """Only where the installed dialects have the ops that the page was written for."""
    page = (ROOT / "docs" / "triton-ops.md").read_text(encoding="utf-8")
    for section in page.split("\n## ")[1:]:
        dialect = section.split("\n")[0].strip("`")
        listed = set(re.findall(r"^\| `([\w.]+)` \|", section, re.MULTILINE))
        if dialect in op_table.BINDINGS and listed != set(op_table.dialect_ops(dialect)):
            pytest.skip(f"the installed `{dialect}` has other ops than the page")
    assert page == op_table.table()


def test_every_reason_and_summary_is_one_short_clause() -> None:
    for text in (*REFUSED.values(), *READ_AS.values(), *(each.summary for each in OPS.values())):
        assert text and "\n" not in text and not text.endswith(".") and len(text) < 100

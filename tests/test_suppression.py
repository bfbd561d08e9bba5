"""Each way to silence a finding works, silences nothing else, and is reported when unused."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hlo_tools.baseline import Baseline, read_baseline, write_baseline
from hlo_tools.errors import SettingsError
from hlo_tools.findings import Cost, Finding, Severity
from hlo_tools.hlo.location import SourceLocation
from hlo_tools.settings import OpIgnore, RuleNames
from hlo_tools.source import SourceTree
from hlo_tools.suppression import Suppressed, suppress


class Spec:
    options: dict[str, object] = {}  # noqa: RUF012

    def __init__(self, id: str, name: str) -> None:
        self.id = id
        self.name = name


RULES = RuleNames([Spec("HLO201", "layout-copy"), Spec("HLO301", "padding-waste")])


def finding(line: int = 1, *, end_line: int | None = None, **changes: object) -> Finding:
    values: dict[str, object] = {
        "rule": "padding-waste",
        "id": "HLO301",
        "severity": Severity.WARNING,
        "module": "jit_f",
        "path": "dump.txt",
        "computation": "main",
        "instruction": "fusion.1",
        "hlo_line": 3,
        "op_name": "jit(f)/attention/dot_general",
        "source": SourceLocation(file="/ci/model.py", line=line, end_line=end_line),
        "stack": (),
        "message": "m",
        "fix": "f",
        "cost": Cost(effect="moves", bytes=1, seconds=None, share=None, times_per_step=1),
        "fingerprint": "aa",
    }
    return Finding(**(values | changes))  # type: ignore[arg-type]


@pytest.fixture
def tree(tmp_path: Path) -> SourceTree:
    root = tmp_path / "project"
    root.mkdir()
    return SourceTree(root=root, base=root)


def run(tree: SourceTree, findings: Sequence[Finding], **changes: object) -> Suppressed:
    arguments: dict[str, object] = {
        "rules": RULES,
        "enabled": RULES.ids,
        "modules": {"jit_f"},
        "tree": tree,
    }
    return suppress(findings, **(arguments | changes))  # type: ignore[arg-type]


def source(tree: SourceTree, text: str, name: str = "model.py") -> None:
    (tree.root / name).write_text(text, encoding="utf-8")


def marks(result: Suppressed) -> list[str | None]:
    return [item.suppressed for item in result.findings]


@pytest.mark.parametrize(
    "comment",
    [
        "# hlo-lint: ignore[padding-waste]",
        "# hlo-lint: ignore[HLO301] heads are 64 wide",
        "#hlo-lint:ignore [layout-copy, padding-waste]",
        "# noqa: E501  # hlo-lint: ignore[HLO3]",
    ],
)
def test_a_comment_on_the_line_silences_the_rules_it_names(tree: SourceTree, comment: str) -> None:
    source(tree, f"y = f(x)  {comment}\nz = y\n")
    assert marks(run(tree, [finding(1), finding(2)])) == ["source", None]


def test_a_comment_for_another_rule_silences_nothing(tree: SourceTree) -> None:
    source(tree, "y = f(x)  # hlo-lint: ignore[layout-copy]\n")
    result = run(tree, [finding(1)])
    assert marks(result) == [None]
    (unused,) = result.unused
    assert (unused.kind, unused.text, unused.file, unused.line) == (
        "source",
        "ignore[layout-copy]",
        "model.py",
        1,
    )


def test_any_line_of_a_statement_may_carry_the_comment(tree: SourceTree) -> None:
    source(tree, "y = f(\n    x,  # hlo-lint: ignore[HLO301]\n)\n")
    assert marks(run(tree, [finding(1, end_line=3)])) == ["source"]


def test_a_string_is_no_comment(tree: SourceTree) -> None:
    source(tree, 's = "# hlo-lint: ignore[HLO301]"\n"""\n# hlo-lint: ignore[HLO301]\n"""\n')
    result = run(tree, [finding(1), finding(3)])
    assert marks(result) == [None, None]
    assert result.unused == ()


def test_comments_are_found_where_python_does_not_parse(tree: SourceTree) -> None:
    source(tree, "y = f(x  # hlo-lint: ignore[HLO301]\n")
    assert marks(run(tree, [finding(1)])) == ["source"]


@pytest.mark.parametrize(
    ("comment", "text"),
    [
        ("ignore", "ignore"),
        ("ignore[]", "ignore[]"),
        ("ignore[padding-wast]", "ignore[padding-wast]"),
    ],
)
def test_a_comment_that_names_no_rule_is_reported(
    tree: SourceTree, comment: str, text: str
) -> None:
    source(tree, f"y = f(x)  # hlo-lint: {comment}\n")
    result = run(tree, [finding(1)])
    assert marks(result) == [None]
    assert [unused.text for unused in result.unused] == [text]


def test_each_rule_of_a_comment_is_judged_by_itself(tree: SourceTree) -> None:
    source(tree, "y = f(x)  # hlo-lint: ignore[HLO201, HLO301]\n")
    assert [u.text for u in run(tree, [finding(1)]).unused] == ["ignore[HLO201]"]


def test_a_rule_that_did_not_run_is_not_unused(tree: SourceTree) -> None:
    source(tree, "y = f(x)  # hlo-lint: ignore[HLO201]\n")
    assert run(tree, [finding(1)], enabled=("HLO301",)).unused == ()


def test_comments_outside_the_source_root_do_not_count(tree: SourceTree) -> None:
    outside = tree.root.parent / "model.py"
    outside.write_text("y = 1  # hlo-lint: ignore[HLO301]\n")
    location = SourceLocation(file=str(outside), line=1)
    assert marks(run(tree, [finding(source=location)])) == [None]


def ignore(glob: str, rules: tuple[str, ...] = ("HLO301",)) -> OpIgnore:
    return OpIgnore(glob=glob, rules=rules, reason="r", file="pyproject.toml", line=4)


def test_an_operation_is_silenced_by_its_name(tree: SourceTree) -> None:
    findings = [finding(), finding(op_name="jit(f)/mlp/dot"), finding(op_name=None)]
    result = run(tree, findings, op_ignores=[ignore("*/attention/*")])
    assert marks(result) == ["config", None, None]
    assert result.unused == ()


@pytest.mark.parametrize("entry", [ignore("*/conv/*"), ignore("*", ("HLO201",)), ignore("JIT*")])
def test_an_entry_that_silences_nothing_is_reported(tree: SourceTree, entry: OpIgnore) -> None:
    result = run(tree, [finding()], op_ignores=[entry])
    assert marks(result) == [None]
    assert [(u.kind, u.text, u.line) for u in result.unused] == [("config", entry.glob, 4)]


def test_a_hostile_glob_is_matched_in_bounded_time(tree: SourceTree) -> None:
    name = "a" * 5000
    result = run(tree, [finding(op_name=name)], op_ignores=[ignore("*a" * 12 + "b")])
    assert marks(result) == [None]


def test_a_baseline_silences_what_it_holds(tree: SourceTree, tmp_path: Path) -> None:
    path = tmp_path / "base.json"
    known = finding(fingerprint="aa")
    write_baseline(path, [known])
    result = run(tree, [known, finding(fingerprint="bb")], baseline=read_baseline(path))
    assert marks(result) == ["baseline", None]
    assert result.unused == ()


def test_a_stale_entry_is_reported_only_if_its_module_was_linted(
    tree: SourceTree, tmp_path: Path
) -> None:
    path = tmp_path / "base.json"
    stale, elsewhere = finding(fingerprint="cc"), finding(fingerprint="dd", module="jit_g")
    baseline = write_baseline(path, [stale, elsewhere])
    unused = run(tree, [], baseline=baseline).unused
    assert [(u.kind, u.text, u.file) for u in unused] == [("baseline", "cc", str(path))]
    assert run(tree, [], baseline=baseline, enabled=("HLO201",)).unused == ()


def test_all_that_match_count_as_used_and_the_nearest_is_named(
    tree: SourceTree, tmp_path: Path
) -> None:
    source(tree, "y = f(x)  # hlo-lint: ignore[HLO301]\n")
    baseline = write_baseline(tmp_path / "base.json", [finding()])
    result = run(tree, [finding()], op_ignores=[ignore("*")], baseline=baseline)
    assert marks(result) == ["source"]
    assert result.unused == ()


@given(st.lists(st.tuples(st.text(max_size=8), st.text(max_size=8)), max_size=5))
def test_a_baseline_reads_back_and_does_not_depend_on_order(
    tmp_path_factory: pytest.TempPathFactory, pairs: list[tuple[str, str]]
) -> None:
    folder = tmp_path_factory.mktemp("baseline")
    findings = [finding(fingerprint=print_, message=text) for print_, text in pairs]
    written = write_baseline(folder / "a", findings)
    assert read_baseline(folder / "a").entries == written.entries
    distinct = list({item.fingerprint: item for item in findings}.values())
    write_baseline(folder / "b", distinct)
    write_baseline(folder / "c", distinct[::-1])
    assert (folder / "b").read_bytes() == (folder / "c").read_bytes()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "null",
        "{}",
        "\udcff",
        '{"hlo_lint_baseline": 2, "findings": []}',
        '{"hlo_lint_baseline": 1}',
        '{"hlo_lint_baseline": 1, "findings": [1]}',
        '{"hlo_lint_baseline": 1, "findings": [{"fingerprint": 1}]}',
        "[" * 100_000,
    ],
)
def test_what_is_no_baseline_is_an_error(tmp_path: Path, text: str) -> None:
    path = tmp_path / "base.json"
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(SettingsError) as caught:
        read_baseline(path)
    assert caught.value.path == str(path)


def test_a_missing_baseline_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="cannot be read"):
        read_baseline(tmp_path / "none.json")


def test_an_empty_baseline_is_readable(tmp_path: Path) -> None:
    write_baseline(tmp_path / "base.json", [])
    assert json.loads((tmp_path / "base.json").read_text())["findings"] == []
    assert read_baseline(tmp_path / "base.json") == Baseline(
        file=str(tmp_path / "base.json"), entries={}
    )


def test_marking_changes_nothing_else(tree: SourceTree) -> None:
    source(tree, "y = f(x)  # hlo-lint: ignore[HLO301]\n")
    (marked,) = run(tree, [finding()]).findings
    assert replace(marked, suppressed=None) == finding()

"""Source files are read under the source root only, whatever path a dump names."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hlo_tools.errors import SettingsError
from hlo_tools.source import MAX_SOURCE_BYTES, SourceTree


def write(path: Path, content: str | bytes = "x = 1\n") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def tree_in(directory: Path) -> SourceTree:
    root = directory / "project"
    root.mkdir(exist_ok=True)
    return SourceTree(root=root.resolve(), base=directory.resolve())


@pytest.mark.parametrize(
    "spelled",
    [
        "model/mlp.py",
        "./model/mlp.py",
        "/home/ci/work/model/mlp.py",
        "C:\\work\\model\\mlp.py",
        "elsewhere/model/mlp.py",
    ],
)
def test_a_path_from_another_machine_is_matched_by_its_suffix(tmp_path: Path, spelled: str) -> None:
    tree = tree_in(tmp_path)
    write(tree.root / "model/mlp.py", "a\nb\n")
    assert tree.display(spelled) == "project/model/mlp.py"
    assert tree.line(spelled, 2) == "b"


def test_the_longest_suffix_wins(tmp_path: Path) -> None:
    tree = tree_in(tmp_path)
    write(tree.root / "mlp.py")
    write(tree.root / "model/mlp.py")
    assert tree.display("/ci/model/mlp.py") == "project/model/mlp.py"


def test_a_file_that_is_here_but_outside_has_no_namesake_inside(tmp_path: Path) -> None:
    tree = tree_in(tmp_path)
    write(tree.root / "mlp.py")
    outside = write(tmp_path / "site-packages/mlp.py")
    assert tree.path(str(outside)) is None


def test_climbing_out_is_refused(tmp_path: Path) -> None:
    tree = tree_in(tmp_path)
    write(tmp_path / "secret.py", "key = 1\n")
    for spelled in ("../secret.py", "a/../../secret.py", "x/../../project/../secret.py"):
        assert tree.lines(spelled) == ()


def test_a_link_that_leads_out_is_refused(tmp_path: Path) -> None:
    tree = tree_in(tmp_path)
    secret = write(tmp_path / "secret.py")
    (tree.root / "link.py").symlink_to(secret)
    (tree.root / "loop.py").symlink_to(tree.root / "loop.py")
    (tree.root / "folder").symlink_to(tmp_path)
    for spelled in ("link.py", "loop.py", "folder/secret.py"):
        assert tree.path(spelled) is None


def test_only_program_text_is_read(tmp_path: Path) -> None:
    """A line of a key file must not get into a log, by a link neither."""
    tree = tree_in(tmp_path)
    write(tree.root / ".env", "KEY=1\n")
    (tree.root / "env.py").symlink_to(tree.root / ".env")
    assert tree.path(".env") is None
    assert tree.path("env.py") is None


def test_pipes_and_directories_are_not_opened(tmp_path: Path) -> None:
    tree = tree_in(tmp_path)
    os.mkfifo(tree.root / "pipe.py")
    (tree.root / "folder.py").mkdir()
    assert tree.lines("pipe.py") == ()
    assert tree.lines("folder.py") == ()


def test_a_huge_file_is_left_alone(tmp_path: Path) -> None:
    tree = tree_in(tmp_path)
    with write(tree.root / "big.py").open("r+b") as stream:
        stream.truncate(MAX_SOURCE_BYTES + 1)
    assert tree.lines("big.py") == ()


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (b"# coding: latin-1\nx = '\xe9'\n", "x = 'é'"),
        (b"\xef\xbb\xbf# bom\nx = '\xc3\xa9'\n", "x = 'é'"),
        (b"# coding: no-such\nx = '\xc3\xa9'\n", "x = 'é'"),
        (b"# coding: zlib\nx = 1\n", "x = 1"),
        (b"#\nx = '\xff'\n", "x = '\ufffd'"),
        (b"#\r\nx = 1\r\n", "x = 1"),
        (b"#\rx = 1\r", "x = 1"),
        ("# \u2028 is no line end\nx = 1\n".encode(), "x = 1"),
    ],
)
def test_encodings_and_line_ends(tmp_path: Path, content: bytes, line: str) -> None:
    tree = tree_in(tmp_path)
    write(tree.root / "a.py", content)
    assert tree.line("a.py", 2) == line


def test_lines_outside_the_file_are_none(tmp_path: Path) -> None:
    tree = tree_in(tmp_path)
    write(tree.root / "a.py", "x")
    assert [tree.line("a.py", number) for number in (-1, 0, 1, 2)] == [None, None, "x", None]


@given(st.text(max_size=80) | st.text("./\\ab\0", max_size=400).map(lambda path: path + ".py"))
def test_any_path_is_answered(path: str) -> None:
    tree = SourceTree(root=Path("/nonexistent"), base=Path("/"))
    assert tree.path(path) is None


def test_a_root_that_is_no_directory_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="no directory"):
        SourceTree.open(tmp_path / "missing")

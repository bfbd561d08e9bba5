"""Paths of every kind become module texts; what cannot be read is an error among them."""

import errno
import gzip
import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from inputs import OTHER, SMALL, Items, message, modules

from hlo_tools.errors import InputError
from hlo_tools.io import ModuleText, NotHloError, read_inputs


def read(*paths: Path | str) -> Items:
    return list(read_inputs([str(path) for path in paths]))


def names(items: Items) -> list[str]:
    return [Path(str(item.path)).name for item in items]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A directory of dumps among other files."""
    root = tmp_path / "dumps"
    (root / "b" / "deep").mkdir(parents=True)
    (root / "a.txt").mkdir()
    (root / ".git").mkdir()
    (root / "2.hlo").write_text(SMALL)
    (root / "1.txt.gz").write_bytes(gzip.compress(SMALL.encode()))
    (root / "a.txt" / "3.log").write_text("step 1\n" + SMALL)
    (root / "b" / "deep" / "4.txt").write_text(OTHER)
    (root / "b" / "notes.md").write_text("# About `HloModule jit_f`\n")
    (root / ".git" / "5.txt").write_text(SMALL)
    return root


def test_a_path_is_kept_as_spelt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "x.txt").write_text(SMALL)
    monkeypatch.chdir(tmp_path)
    (item,) = read(".//x.txt")
    assert item.path == ".//x.txt"


def test_inputs_are_read_in_order_and_one_by_one(tmp_path: Path) -> None:
    """A file that changes while the one before it is linted is seen as it is then."""
    first, second = tmp_path / "1", tmp_path / "2"
    first.write_text(SMALL)
    second.write_text(SMALL)
    items = read_inputs([str(first), str(second)])
    assert isinstance(next(items), ModuleText)
    second.write_text(OTHER)
    item = next(items)
    assert isinstance(item, ModuleText)
    assert item.text == OTHER


def test_a_bad_input_does_not_stop_the_others(tmp_path: Path) -> None:
    good = tmp_path / "good"
    good.write_text(SMALL)
    (tmp_path / "picture").write_bytes(b"\x89PNG\0")
    items = read(tmp_path / "missing", good, tmp_path / "picture", good)
    kinds = [type(item) for item in items]
    assert kinds == [InputError, ModuleText, NotHloError, ModuleText]
    assert names(items) == ["missing", "good", "picture", "good"]


def test_a_missing_file_is_told() -> None:
    assert message(read("/no/such/file")) == "this cannot be read: No such file or directory"


@pytest.mark.parametrize("path", ["x" * 5000, "a\0b", "", "/dev/null/x"])
def test_impossible_paths_are_told(path: str) -> None:
    assert message(read(path)) != ""


def test_files_below_a_directory_are_read_in_order(tree: Path) -> None:
    items = read(tree)
    assert names(items) == ["1.txt.gz", "2.hlo", "3.log", "4.txt"]
    assert [line for line, _ in modules(items)] == [1, 1, 2, 1]


def test_links_are_followed_but_no_loop_is(tree: Path, tmp_path: Path) -> None:
    (tree / "b" / "up").symlink_to(tree, target_is_directory=True)
    (tree / "b" / "self").symlink_to(tree / "b", target_is_directory=True)
    (tree / "again.txt").symlink_to(tree / "2.hlo")
    (tree / "dangling.txt").symlink_to(tree / "none")
    (tree / "loop.txt").symlink_to(tree / "loop.txt")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "5.txt").write_text(SMALL)
    (tree / "z").symlink_to(elsewhere, target_is_directory=True)
    assert names(read(tree)) == ["1.txt.gz", "2.hlo", "3.log", "4.txt", "5.txt"]


def test_devices_pipes_and_sockets_in_a_directory_are_left_alone(tree: Path) -> None:
    os.mkfifo(tree / "pipe.txt")
    (tree / "zero.txt").symlink_to("/dev/zero")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tree / "s.txt"))
        assert len(modules(read(tree))) == 4


def test_a_pipe_that_is_named_is_read() -> None:
    reader, writer = os.pipe()
    os.write(writer, SMALL.encode())
    os.close(writer)
    assert modules(read(f"/dev/fd/{reader}")) == [(1, SMALL)]
    os.close(reader)


def test_a_damaged_dump_in_a_directory_is_told(tree: Path) -> None:
    (tree / "0.txt.gz").write_bytes(gzip.compress(SMALL.encode())[:-8] + bytes(8))
    items = read(tree)
    assert [isinstance(item, InputError) for item in items] == [True] + [False] * 4


def test_a_file_that_cannot_be_opened_is_told(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    original = Path.open

    def fail(self: Path, *arguments: object, **options: object) -> object:
        if self.name == "2.hlo":
            raise PermissionError(errno.EACCES, "Permission denied", str(self))
        return original(self, *arguments, **options)  # type: ignore[call-overload]

    monkeypatch.setattr(Path, "open", fail)
    items = read(tree)
    errors = [item for item in items if isinstance(item, InputError)]
    assert [error.message for error in errors] == ["this cannot be read: Permission denied"]
    assert len(items) == 4


def test_a_directory_that_cannot_be_listed_is_told(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = Path.iterdir

    def fail(self: Path) -> Iterator[Path]:
        if self.name == "b":
            raise PermissionError(errno.EACCES, "Permission denied", str(self))
        return original(self)

    monkeypatch.setattr(Path, "iterdir", fail)
    items = read(tree)
    assert names(items) == ["1.txt.gz", "2.hlo", "3.log", "b"]
    assert isinstance(items[-1], InputError)


def test_a_directory_without_modules_is_told(tmp_path: Path) -> None:
    assert message(read(tmp_path)) == "this directory holds no HLO module"
    (tmp_path / "x.mlir").write_text("module {\n  %0 = stablehlo.add %a, %a\n}\n")
    assert "x.mlir`: this is StableHLO (MLIR)" in message(read(tmp_path))


def test_strange_names_are_handed_on_as_they_are(tmp_path: Path) -> None:
    name = "\x1b[31m\n::error::\u202e\udcff.txt"
    (tmp_path / name).write_text(SMALL)
    assert names(read(tmp_path)) == [name]


DUMP = [
    "before_optimizations.txt",
    "0003.simplify.after_cse.before_dce.txt",
    "0012.fusion.after_a.before_b.txt",
    "cpu_after_optimizations.txt",
]


@pytest.mark.parametrize("stages", [DUMP[:1], DUMP[:2], DUMP[:3], DUMP])
def test_of_a_dump_folder_the_last_stage_of_each_module_is_read(
    stages: list[str], tmp_path: Path
) -> None:
    for module in ("module_0001.jit_f", "module_0010.jit_g"):
        for stage in stages:
            (tmp_path / f"{module}.{stage}").write_text(f"{SMALL}// {stage}\n")
        for report in ("cpu_after_optimizations-buffer-assignment.txt", "debug_options"):
            (tmp_path / f"{module}.{report}").write_text(SMALL)
        (tmp_path / module).mkdir()
        (tmp_path / module / "module.mlir").write_text("module {\n}\n")
    found = modules(read(tmp_path))
    assert [text for _, text in found] == [f"{SMALL}// {stages[-1]}\n"] * 2

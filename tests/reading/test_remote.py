"""Dumps behind URLs are read as those of this machine are."""

import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hlo_tools.errors import InputError
from hlo_tools.io import read_inputs
from hlo_tools.reading.remote import is_url

TEXT = """\
HloModule {name}

ENTRY %main (a: f32[8]) -> f32[8] {{
  ROOT %a = f32[8] parameter(0)
}}
"""


def dump(name: str) -> bytes:
    return TEXT.format(name=name).encode()


FILES = {
    "module_0001.jit_f.before_optimizations.txt": dump("before"),
    "module_0001.jit_f.after_optimizations.txt": dump("after"),
    "notes.txt": b"nothing to see here\n",
    "deeper/step.hlo.txt": dump("step"),
    "deeper/.hidden/old.hlo.txt": dump("old"),
    ".cache/old.hlo.txt": dump("old"),
}


@pytest.fixture
def memory() -> Iterator[Any]:
    fsspec = pytest.importorskip("fsspec")
    files = fsspec.filesystem("memory")
    for name, data in FILES.items():
        files.pipe(f"/bucket/dumps/{name}", data)
    yield files
    files.rm("/bucket", recursive=True)


def names(*paths: str) -> list[str]:
    found = []
    for item in read_inputs(paths):
        assert not isinstance(item, InputError), item
        found.append(item.text.split("\n", 1)[0].split()[-1])
    return found


@pytest.mark.parametrize("url", ["memory://bucket/dumps", "memory://bucket/dumps/"])
def test_directory_behind_a_url_is_read_as_one_here(memory: Any, url: str, tmp_path: Path) -> None:
    for name, data in FILES.items():
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
    assert names(url) == names(str(tmp_path)) == names(tmp_path.as_uri()) == ["after", "step"]


def test_file_behind_a_url_keeps_its_name(memory: Any) -> None:
    url = "memory://bucket/dumps/deeper/step.hlo.txt"
    (item,) = read_inputs([url])
    assert not isinstance(item, InputError)
    assert item.path == url


def test_one_file_system_in_another(tmp_path: Path) -> None:
    pytest.importorskip("fsspec")
    archive = tmp_path / "dumps.zip"
    with zipfile.ZipFile(archive, "w") as packed:
        for name, data in FILES.items():
            packed.writestr(name, data)
    assert names(f"zip://::{archive.as_uri()}") == ["after", "step"]
    assert names(f"zip://deeper/step.hlo.txt::{archive.as_uri()}") == ["step"]


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("memory://bucket/dumps/nothing.txt", "cannot be read"),
        ("nonsense://bucket/x", "this URL cannot be opened"),
        ("memory://bucket/dumps/notes.txt", "HLO"),
    ],
)
def test_what_cannot_be_read_is_told_and_the_rest_read(memory: Any, url: str, told: str) -> None:
    error, item = read_inputs([url, "memory://bucket/dumps/deeper/step.hlo.txt"])
    assert isinstance(error, InputError)
    assert told in error.message
    assert error.path == url
    assert not isinstance(item, InputError)


@pytest.mark.parametrize(
    ("path", "answer"),
    [
        ("gs://bucket/dumps", True),
        ("simplecache::s3://bucket/x", True),
        ("zip://a::file:///b.zip", True),
        ("C:\\dumps", False),
        ("C://dumps", False),
        ("a::b.txt", False),
        ("dumps/step.hlo.txt", False),
        ("-", False),
    ],
)
def test_urls_are_told_from_paths(path: str, answer: bool) -> None:
    assert is_url(path) == answer


def test_url_without_fsspec_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "fsspec.core", None)
    (error,) = read_inputs(["gs://bucket/x"])
    assert isinstance(error, InputError)
    assert "hlo-tools[remote]" in error.message

"""Files are replaced whole or left as they were."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from hlo_tools.output import write_whole


def failing() -> Iterator[str]:
    yield "half"
    raise RuntimeError("stopped")


def test_a_failure_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    file = tmp_path / "report.json"
    file.write_text("old")
    with pytest.raises(RuntimeError):
        write_whole(file, failing())
    assert file.read_text() == "old"
    assert list(tmp_path.iterdir()) == [file]


def test_permissions_and_links_are_kept(tmp_path: Path) -> None:
    file = tmp_path / "real.json"
    file.write_text("old")
    file.chmod(0o640)
    link = tmp_path / "link.json"
    link.symlink_to(file)
    write_whole(link, ["n", "ew"])
    assert link.is_symlink()
    assert file.read_text() == "new"
    assert file.stat().st_mode & 0o777 == 0o640


def test_a_device_is_written_not_replaced() -> None:
    device = Path("/dev/null")
    write_whole(device, ["text"])
    assert device.is_char_device()


def test_text_is_utf8_with_its_own_line_ends(tmp_path: Path) -> None:
    write_whole(tmp_path / "a", ["µ\n", "é\n"])
    assert (tmp_path / "a").read_bytes() == "µ\né\n".encode()

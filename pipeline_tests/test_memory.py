"""How much memory there is: for the machine, for a container, for this process."""

from pathlib import Path

import pytest

from pipeline import memory

GIB = 2**30
MEMINFO = "MemTotal:       25165824 kB\nMemFree:         1048576 kB\nMemAvailable:   12582912 kB\n"


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine with 12 GiB to give away, without a container."""
    (tmp_path / "meminfo").write_text(MEMINFO)
    monkeypatch.setattr(memory, "MEMINFO", tmp_path / "meminfo")
    monkeypatch.setattr(memory, "CGROUP", tmp_path)
    return tmp_path


def test_a_quarter_of_what_is_free(machine: Path) -> None:
    assert memory.available_bytes() == 12 * GIB
    assert memory.free_share() == 3 * GIB
    (machine / "meminfo").write_text(MEMINFO.replace("12582912", "1024"))
    assert memory.free_share() == 512 * 2**20


@pytest.mark.parametrize(
    ("limit", "free"), [(4 * GIB, 3 * GIB), (64 * GIB, 12 * GIB), ("max", 12 * GIB), (GIB // 2, 0), ("", 12 * GIB)]
)
def test_a_container_may_hold_less_than_the_machine(machine: Path, limit: int | str, free: int) -> None:
    (machine / "memory.max").write_text(f"{limit}\n")
    (machine / "memory.current").write_text(f"{GIB}\n")
    assert memory.available_bytes() == free


def test_a_system_without_meminfo(machine: Path) -> None:
    (machine / "meminfo").unlink()
    assert memory.available_bytes() > 0


def test_the_peak_is_at_least_what_is_held(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    held = memory.held_bytes()
    assert 10 * 2**20 < held <= memory.peak_bytes()
    monkeypatch.setattr(memory, "STATUS", tmp_path / "not there")
    assert memory.held_bytes() == memory.peak_bytes() > 10 * 2**20


def test_what_a_container_has_read_is_free(machine: Path) -> None:
    (machine / "memory.max").write_text(f"{4 * GIB}")
    (machine / "memory.current").write_text(f"{4 * GIB}")
    assert memory.available_bytes() == 0
    (machine / "memory.stat").write_text(f"anon {GIB}\ninactive_file {3 * GIB}\nactive_file 4096\n")
    assert memory.available_bytes() == 3 * GIB

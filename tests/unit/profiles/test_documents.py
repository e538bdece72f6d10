"""Files that are no profile: each a typed error that says which file and why."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from rankblend.errors import ProfileError
from rankblend.profiles import load_profile, read_profile
from rankblend.profiles._documents import MAX_BYTES, document_from_file

MINIMAL = '[signals.a]\nevidence = "salience"\n[score]\nof = ["a"]\n'


def problem(path: Path) -> str:
    with pytest.raises(ProfileError) as caught:
        load_profile(path)
    assert len(caught.value.problems) == 1
    assert caught.value.profile == path.name
    return caught.value.problems[0]


def test_load_when_file_is_missing_then_says_so(tmp_path: Path) -> None:
    assert problem(tmp_path / "none.toml").endswith("none.toml: there is no such file")


def test_load_when_path_is_a_folder_then_says_so(tmp_path: Path) -> None:
    folder = tmp_path / "p.toml"
    folder.mkdir()
    assert problem(folder).endswith("is a folder, not a profile file")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_load_when_path_is_a_pipe_then_refuses_without_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.toml")
    assert problem(tmp_path / "pipe.toml").endswith("is not a regular file")


def test_load_when_path_has_a_nul_then_is_a_profile_error() -> None:
    with pytest.raises(ProfileError):
        load_profile("a\0b.toml")


def test_load_when_file_is_not_utf_8_then_names_the_byte(tmp_path: Path) -> None:
    path = tmp_path / "latin.toml"
    path.write_bytes(b'name = "old \xe9"\n')
    assert problem(path).endswith("is not UTF-8, byte 12 is 0xe9")


def test_load_when_file_is_too_large_then_refuses(tmp_path: Path) -> None:
    path = tmp_path / "large.toml"
    path.write_bytes(b"#" * (MAX_BYTES + 1))
    assert "is larger than 1,000,000 bytes" in problem(path)


def test_load_when_syntax_is_wrong_then_names_the_line(tmp_path: Path) -> None:
    path = tmp_path / "broken.toml"
    path.write_text('name = "x"\n[pool\n', encoding="utf-8")
    assert "is not TOML" in problem(path)
    assert "line 2" in problem(path)


def test_load_when_file_has_a_byte_order_mark_and_windows_lines_then_reads_it(
    tmp_path: Path,
) -> None:
    path = tmp_path / "windows.toml"
    path.write_bytes(b"\xef\xbb\xbf" + MINIMAL.replace("\n", "\r\n").encode())
    assert load_profile(path).hash == read_profile(MINIMAL).hash
    assert load_profile(path).name == "windows"


@pytest.mark.parametrize(
    "text",
    [
        "x = " + "9" * 5000,
        "x = 0x" + "F" * 5000,
        "x = " + "[" * 5000 + "]" * 5000,
        "x = " + "{a=" * 40 + "1" + "}" * 40,
        f"[pool]\nsize = {2**63}",
    ],
)
def test_read_when_numbers_or_nesting_are_absurd_then_is_one_profile_error(text: str) -> None:
    with pytest.raises(ProfileError) as caught:
        read_profile(text)
    assert len(str(caught.value)) < 300


def test_document_when_read_from_a_file_then_relative_paths_start_in_its_folder(
    tmp_path: Path,
) -> None:
    path = tmp_path / "a.toml"
    path.write_text(MINIMAL, encoding="utf-8")
    assert document_from_file(path).folder == tmp_path.resolve()

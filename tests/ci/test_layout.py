# SPDX-License-Identifier: Apache-2.0
"""What stands in for GitHub's actions lays files out as the pinned versions do."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.workflows.actions.layout import ActionError, deployed, download, upload


def files(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def keep(folder: Path, name: str, paths: str, *written: str, attempt: str = "1") -> Path:
    """Write files into a workspace and upload ``paths`` of it; return where artefacts are."""
    for one in written:
        (folder / one).parent.mkdir(parents=True, exist_ok=True)
        (folder / one).write_text(attempt)
    (folder / "store").mkdir(exist_ok=True)
    upload(folder / "store", name, paths, workspace=folder, attempt=attempt)
    return folder / "store"


@pytest.mark.parametrize(
    ("paths", "found"),
    [
        ("out/a", ["b/1", "2"]),
        ("out/a/2", ["2"]),
        ("out/a/2\nout/c", ["a/2", "c/3"]),  # below what they have in common
        ("out/a/2\nout/nothing", ["a/2"]),  # also where one is not there
        ("out/*/*", ["a/2", "a/b/1", "c/3"]),
    ],
)
def test_an_artefact_begins_where_its_paths_part(tmp_path: Path, paths: str, found: list[str]) -> None:
    """One folder's content, one file's name, what several share; nothing whose name begins with a dot."""
    store = keep(tmp_path, "x", paths, "out/a/b/1", "out/a/2", "out/c/3", "out/a/.hidden", "out/c/.git/4")
    assert files(store / "x") == sorted(found)


def test_a_single_artefact_is_unpacked_flat(tmp_path: Path) -> None:
    """By name, or as the only one that matches; several go into a folder each, unless they are merged."""
    store = keep(tmp_path, "leg-a", "a", "a/1")
    ways = ({"name": "leg-a"}, {"pattern": "leg-*"}, {"pattern": "leg-*", "merge": True})
    for number, asked in enumerate(ways):
        download(store, tmp_path / f"{number}", **asked)  # type: ignore[arg-type]
        assert files(tmp_path / f"{number}") == ["1"]
    keep(tmp_path, "leg-b", "b", "b/2")
    download(store, tmp_path / "each", pattern="leg-*")
    assert files(tmp_path / "each") == ["leg-a/1", "leg-b/2"]
    download(store, tmp_path / "merged", pattern="leg-*", merge=True)
    assert files(tmp_path / "merged") == ["1", "2"]
    download(store, tmp_path / "none", pattern="other-*")
    assert not (tmp_path / "none").exists()
    with pytest.raises(ActionError, match="other"):
        download(store, tmp_path / "none", name="other")


def test_a_job_that_is_run_again_leaves_a_second_artefact(tmp_path: Path) -> None:
    """The newest of a name is fetched, Pages refuses two, and one attempt has no name twice."""
    store = keep(tmp_path, "site", "a", "a/1")
    assert deployed(store, "site") == store / "site"
    with pytest.raises(ActionError, match="already exists"):
        keep(tmp_path, "site", "a", "a/1")
    keep(tmp_path, "site", "a", "a/1", attempt="2")
    download(store, tmp_path / "got", pattern="*")
    assert (tmp_path / "got" / "1").read_text() == "2"
    with pytest.raises(ActionError, match="Multiple artifacts"):
        deployed(store, "site")

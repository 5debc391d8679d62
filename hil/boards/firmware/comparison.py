"""Whether two bundles put the same bytes on a board; where they do, there is nothing to measure twice."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from hil.boards.firmware.build_folder import flash_files, flasher_args
from hil.boards.firmware.digests import Digests, file_sha256
from hil.boards.firmware.selection import bundle_folders, verify_bundle

SCHEMA = 1

Outcome = Literal["identical", "different", "only-in-head", "only-in-base"]


@dataclass(frozen=True)
class TargetComparison:
    """What became of an image, whose name is ``target``.

    ``differing`` names what is flashed in another way: files of the head, and those that only base has.
    """

    target: str
    outcome: Outcome
    head: Digests | None
    base: Digests | None
    differing: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        return {
            "target": self.target,
            "outcome": self.outcome,
            "head": _facts(self.head),
            "base": _facts(self.base),
            "differing": list(self.differing),
        }


def compare_bundles(head: Path, base: Path) -> tuple[TargetComparison, ...]:
    """Compare what two bundles flash, image by image, after checking both.

    ELF files do not count, as they are not flashed; where an image lies and how its flash is addressed does.

    Raises:
        ConfigError: one of them is no bundle, or is damaged.
        RigError: the disk does not give a file.
    """
    heads, bases = verify_bundle(head), verify_bundle(base)
    head_folders, base_folders = _folders(head, heads), _folders(base, bases)
    found = []
    for target in sorted(heads.keys() | bases.keys()):
        if target not in bases:
            found.append(TargetComparison(target, "only-in-head", heads[target], None))
        elif target not in heads:
            found.append(TargetComparison(target, "only-in-base", None, bases[target]))
        else:
            parts = (
                _flashed(head_folders[target], heads[target]),
                _flashed(base_folders[target], bases[target]),
            )
            differing = tuple(sorted(_differing(*parts)))
            outcome: Outcome = "different" if differing else "identical"
            found.append(TargetComparison(target, outcome, heads[target], bases[target], differing))
    return tuple(found)


def same_flash(first: Path, second: Path) -> bool:
    """Say whether two builds put the same bytes on a board, whatever their files are called.

    Raises ConfigError where one of them is no build, OSError where the disk does not give a file.
    """
    return _content(first) == _content(second)


def _content(build_dir: Path) -> tuple[list[tuple[int, str]], str]:
    files = [(int(offset, 0), file_sha256(build_dir / name)) for offset, name in flash_files(build_dir)]
    return files, str(flasher_args(build_dir).get("write_flash_args"))


def _folders(bundle: Path, digests: dict[str, Digests]) -> dict[str, Path]:
    return bundle_folders(bundle) or dict.fromkeys(digests, bundle)


def _flashed(folder: Path, digests: Digests) -> dict[str, tuple[int, str]]:
    """Return what is flashed: where and which content; and the settings that esptool writes into headers."""
    files = {name: (int(offset, 0), digests.files[name]) for offset, name in flash_files(folder)}
    settings = str(flasher_args(folder).get("write_flash_args"))
    return {**files, "write_flash_args": (0, settings)}


def _differing(head: dict[str, tuple[int, str]], base: dict[str, tuple[int, str]]) -> list[str]:
    return [name for name in head.keys() | base.keys() if head.get(name) != base.get(name)]


def _facts(digests: Digests | None) -> dict[str, Any] | None:
    if digests is None:
        return None
    return {"commit": digests.commit, "dirty": digests.dirty, "image_sha256": digests.image_sha256}

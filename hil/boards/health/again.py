"""What a later run of the same firmware says of a verdict: flakes, and regressions that were none. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from hil.boards.firmware.variant import target_of
from hil.boards.health.types import RunHealth

_Alike = Callable[[RunHealth, RunHealth, str], bool]


@dataclass(frozen=True)
class Again:
    """``checked`` verdicts were given again, ``wrong`` of them had blocked for nothing."""

    checked: int
    wrong: int

    @property
    def ratio(self) -> float | None:
        return self.wrong / self.checked if self.checked else None


@dataclass(frozen=True)
class _Judged:
    run: RunHealth
    blocked: bool


def flakes(runs: Sequence[RunHealth], *, since: Callable[[RunHealth], bool]) -> Again:
    """Return how many blocking series were judged again, and how many of them blocked once and then passed.

    ``runs`` are of one rack in the order of their start; those are counted that ``since`` holds of.
    """
    checked = wrong = 0
    for name, judged in _by_series(runs, "blocked", "passed").items():
        for first, second in _pairs(judged, name, _same_firmware):
            if since(first.run):
                checked += 1
                wrong += first.blocked and not second.blocked
    return Again(checked, wrong)


def false_regressions(runs: Sequence[RunHealth], *, since: Callable[[RunHealth], bool]) -> Again:
    """Return how many comparisons could be checked, and how many of them had blocked for nothing.

    One of an image with itself checks itself; another is checked by the next one of the same two images.
    """
    checked = wrong = 0
    for name, judged in _by_series(runs, "compared_blocked", "compared_passed").items():
        with_itself = [one for one in judged if _is_with_itself(one.run, name)]
        others = [one for one in judged if one not in with_itself]
        for one in with_itself:
            if since(one.run):
                checked += 1
                wrong += one.blocked
        for first, second in _pairs(others, name, _same_pair):
            if since(first.run):
                checked += 1
                wrong += first.blocked and not second.blocked
    return Again(checked, wrong)


def _by_series(runs: Sequence[RunHealth], blocked: str, passed: str) -> Mapping[str, list[_Judged]]:
    found: dict[str, list[_Judged]] = {}
    for run in runs:
        for name in getattr(run, blocked):
            found.setdefault(name, []).append(_Judged(run, blocked=True))
        for name in getattr(run, passed):
            found.setdefault(name, []).append(_Judged(run, blocked=False))
    return found


def _pairs(judged: Sequence[_Judged], name: str, alike: _Alike) -> Iterator[tuple[_Judged, _Judged]]:
    """Yield each verdict with the next one that was given under the same conditions."""
    for n, first in enumerate(judged):
        second = next((later for later in judged[n + 1 :] if alike(first.run, later.run, name)), None)
        if second:
            yield first, second


def _same_firmware(first: RunHealth, second: RunHealth, name: str) -> bool:
    """Say whether both runs measured a board's series with the same images, over the same air."""
    board = name.split("/")[1]
    targets = {part.target for run in (first, second) for part in run.boards if part.board == board}
    return (
        len(targets) == 1
        and first.profile == second.profile
        and _same_images(first.firmware, second.firmware, min(targets))
    )


def _same_pair(first: RunHealth, second: RunHealth, name: str) -> bool:
    target = name.split("/")[1]  # of a comparison, which is of all boards of a target
    return (
        first.profile == second.profile
        and _same_images(first.firmware, second.firmware, target)
        and _same_images(first.base, second.base, target)
    )


def _is_with_itself(run: RunHealth, name: str) -> bool:
    return _same_images(run.firmware, run.base, name.split("/")[1])


def _same_images(first: Mapping[str, str], second: Mapping[str, str], target: str) -> bool:
    """Say whether a target has images in both, and those of the same name are the same bytes."""
    shared = [name for name in first.keys() & second.keys() if target_of(name) == target]
    return bool(shared) and all(first[name] == second[name] for name in shared)

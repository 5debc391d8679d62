"""One series of ratios from nights beside several reference firmwares, of which each overlaps the next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hil.history.nightly.nights import Night

OVERLAP_NIGHTS = 14


@dataclass(frozen=True)
class Chain:
    """Nights that can be set beside each other, and their ratios to the first of the references (logarithms).

    ``overlaps`` are how many nights measured a renewed reference and one before it, for each renewal.
    """

    nights: tuple[Night, ...]
    ratios: tuple[float, ...]
    overlaps: tuple[int, ...] = ()


def chain(nights: Sequence[Night]) -> list[Chain]:
    """Return the nights with a reference, in chains: one more begins where a reference does not overlap.

    A new reference is set to the level at which it was while one before it was measured too: the middle of
    their differences. So a faster or slower reference makes no step.
    """
    parts: list[list[Night]] = []
    known: set[str] = set()
    for night in nights:
        if not night.ratios:
            continue
        if not parts or not _linked(night, known, nights):
            parts.append([])
            known = set()
        parts[-1].append(night)
        known |= set(night.ratios)
    return [_link(part) for part in parts]


def _linked(night: Night, known: set[str], nights: Sequence[Night]) -> bool:
    """Whether a night has a reference that some night measured beside a known one."""
    own = set(night.ratios)
    return bool(own & known) or any(own & set(other.ratios) and known & set(other.ratios) for other in nights)


def _link(nights: Sequence[Night]) -> Chain:
    images = list(dict.fromkeys(image for night in nights for image in night.ratios))
    offsets = {images[0]: 0.0}
    overlaps = []
    for image in images[1:]:
        both = [
            float(np.mean([night.ratios[old] + offsets[old] for old in offsets if old in night.ratios]))
            - night.ratios[image]
            for night in nights
            if image in night.ratios and set(offsets) & set(night.ratios)
        ]
        if both:
            offsets[image] = _middle(both)
            overlaps.append(len(both))
    ratios = [
        float(np.mean([ratio + offsets[image] for image, ratio in night.ratios.items() if image in offsets]))
        for night in nights
    ]
    return Chain(tuple(nights), tuple(ratios), tuple(overlaps))


def _middle(values: Sequence[float]) -> float:
    """Return the Hodges-Lehmann estimate: nearly as sure as the mean, and a bad night does not move it."""
    array = np.asarray(values)
    first, second = np.triu_indices(len(array))
    return float(np.median((array[first] + array[second]) / 2))

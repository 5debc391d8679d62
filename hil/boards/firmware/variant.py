"""The images of one target: the same sources, with the kernel configured in another way.

So far they differ in FreeRTOS's tick. An image is named after its target; one that is not as by default adds
how: ``esp32``, ``esp32+tick100``.
"""

from __future__ import annotations

from dataclasses import dataclass

from hil.base.errors import ConfigError

DEFAULT_TICK_HZ = 1000
TICKS_HZ = (DEFAULT_TICK_HZ, 100)  # each but the default has its overlay, firmware/sdkconfig.tick<Hz>

_TICK = "+tick"


@dataclass(frozen=True)
class Image:
    """What is built and flashed: a target and how often a second its kernel ticks."""

    target: str
    tick_hz: int = DEFAULT_TICK_HZ

    def __str__(self) -> str:
        return self.target + self.variant

    @property
    def variant(self) -> str:
        """What the name adds to the target's; "" where the image is as by default."""
        return "" if self.tick_hz == DEFAULT_TICK_HZ else f"{_TICK}{self.tick_hz}"

    @property
    def overlay(self) -> str:
        """The file in firmware/ whose values come after the defaults'; "" where there is none."""
        return f"sdkconfig.{self.variant[1:]}" if self.variant else ""

    @property
    def options(self) -> str:
        """The options of `hil build` that make this image."""
        return f"--target {self.target}" + (f" --tick-hz {self.tick_hz}" if self.variant else "")


def check_tick_hz(tick_hz: int) -> int:
    """Return ``tick_hz``. Raises ConfigError where no image has such a tick."""
    if tick_hz not in TICKS_HZ:
        raise ConfigError(
            f"there is no image with a tick of {tick_hz} Hz.",
            next_step=f"use one of: {', '.join(map(str, TICKS_HZ))}.",
        )
    return tick_hz


def target_of(name: str) -> str:
    """Return the target of the image that has this name."""
    return name.partition("+")[0]

# SPDX-License-Identifier: Apache-2.0
"""Simulated noise of a virtual rack: boots and sessions that differ by themselves, drawn from a seed.

A real rack's boots differ: another place in the beacon's period, another layout of the heap, another mood of
the channel. A virtual one's hardly do, so a gate tried on it has nothing to withstand. Here each boot of a
board gets an offset on the log scale: its link's delays and jitter are exp(offset) times as long. What is
measured under it says ``simulated`` in its record.

The draws are frozen: they hang on nothing but their version, seed, session, board and boot, by SHA-256, so
that the same words give the same offsets on every machine.
"""

from __future__ import annotations

import dataclasses
import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import NormalDist

from hil.base import yamlfile
from hil.base.errors import ConfigError
from hil.base.yamlvalue import did_you_mean
from hil.boards.rack import Rack
from hil.boards.rack.noise import NoiseSettings
from hil.model import Scalar
from hil.store.run_info import NoiseInfo
from hil.virtual.air.profile import MAX_DELAY_S, AirProfile, Impairment

PROFILES = Path(__file__).parent / "noise.yaml"
SCHEMA_VERSION = 1
DRAW_VERSION = "hil-noise-1"  # part of every draw: offsets of another generator are called otherwise
OFF = "none"
DEVIATION_MAX = 0.5
_MAX_DELAY_US = round(MAX_DELAY_S * 1e6)
_UNIT_BITS = 52
_STANDARD = NormalDist()


@dataclass(frozen=True)
class NoiseProfile:
    """Standard deviations on the log scale; ``bad_boots`` is the share of boots whose deviation is
    ``bad_boot_factor`` times as large."""

    name: str
    boot: float
    session: float
    bad_boots: float
    bad_boot_factor: float
    description: str = ""


@dataclass(frozen=True)
class Draw:
    """The offsets of one boot of a board, on the log scale. ``mode`` is that of a bistable board (0 or 1)."""

    session_offset: float
    boot_offset: float
    drift_offset: float = 0.0
    mode: int = 0
    mode_offset: float = 0.0

    @property
    def offset(self) -> float:
        return self.session_offset + self.boot_offset + self.drift_offset + self.mode_offset


class Noise:
    """The noise of one run: ``session`` is what its draws are called by, the run's id unless settings say."""

    def __init__(self, settings: NoiseSettings, profile: NoiseProfile, session: str) -> None:
        self.settings = settings
        self.profile = profile
        self.session = settings.session or session

    def draw(self, board: str, boot_index: int) -> Draw:
        """Return the offsets of a boot; the same words give the same offsets, always."""
        profile, settings = self.profile, self.settings
        bad = self._uniform("bad", board, boot_index) < profile.bad_boots
        deviation = profile.boot * (profile.bad_boot_factor if bad else 1.0)
        drift, bistable = settings.drift, settings.bistable
        second_mode = (
            bistable is not None
            and bistable.board in ("", board)
            and self._uniform("mode", board, boot_index) < bistable.probability
        )
        return Draw(
            session_offset=profile.session * self._normal("session", board) + settings.session_step,
            boot_offset=deviation * self._normal("boot", board, boot_index),
            drift_offset=drift.offset(boot_index) if drift and drift.board == board else 0.0,
            mode=int(second_mode),
            mode_offset=bistable.offset if bistable and second_mode else 0.0,
        )

    def environment(self, board: str, boot_index: int) -> Mapping[str, Scalar]:
        """Return what a record says of it: offsets on the log scale, and that they are simulated."""
        draw = self.draw(board, boot_index)
        return {
            "simulated": True,
            "profile": self.profile.name,
            "seed": self.settings.seed,
            "session": self.session,
            "boot": boot_index,
            "session_offset": round(draw.session_offset, 6),
            "boot_offset": round(draw.boot_offset, 6),
            "drift_offset": round(draw.drift_offset, 6),
            "mode": draw.mode,
            "mode_offset": round(draw.mode_offset, 6),
            "offset": round(draw.offset, 6),
        }

    def info(self) -> NoiseInfo:
        """Return what run.json says of it."""
        return NoiseInfo(
            simulated=True,
            profile=self.profile.name,
            seed=self.settings.seed,
            description=describe(self.settings, self.profile),
        )

    def sentence(self) -> str:
        """Return what a person is told at the start of the run."""
        return f"Simulated noise on this virtual rack: {describe(self.settings, self.profile)}."

    def _normal(self, *words: object) -> float:
        return float(_STANDARD.inv_cdf(self._uniform(*words)))

    def _uniform(self, *words: object) -> float:
        """Return a number within (0, 1) that hangs on seed, session and ``words`` only."""
        text = "\0".join(map(str, (DRAW_VERSION, self.settings.seed, self.session, *words)))
        drawn = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> (64 - _UNIT_BITS)
        return (drawn + 0.5) / float(1 << _UNIT_BITS)


def choose_noise(rack: Rack, profile: str) -> NoiseSettings | None:
    """Return the noise that a run shall have: the rack file's, with ``profile`` where given.

    Raises ConfigError: a rack without virtual air, or no such profile.
    """
    settings = rack.access_point.noise
    if profile and not rack.is_virtual:
        raise ConfigError(
            f"--noise simulates noise on a virtual rack's air; rack {rack.name} has a real access point.",
            next_step="leave --noise out.",
        )
    if profile == OFF:
        settings = None
    elif profile:
        settings = dataclasses.replace(settings or NoiseSettings(profile), profile=profile)
    if settings:
        load_noise_profile(settings.profile)
    return settings


def describe(settings: NoiseSettings, profile: NoiseProfile) -> str:
    """Return the noise in a few words."""
    words = [
        f"profile {profile.name} (boots {_percent(profile.boot)}, sessions {_percent(profile.session)})",
        f"seed {settings.seed}",
    ]
    if settings.session_step:
        words.append(f"a step of {_percent(settings.session_step, sign=True)}")
    if drift := settings.drift:
        slope, step = (_percent(value, sign=True) for value in (drift.per_boot, drift.step))
        step = f" and steps by {step} at boot {drift.at_boot}" if drift.step else ""
        words.append(f"{drift.board} drifts by {slope} a boot{step}")
    if mode := settings.bistable:
        where = f"{mode.board} is" if mode.board else "boards are"
        words.append(f"{where} bistable ({_percent(mode.probability)} at {_percent(mode.offset, sign=True)})")
    return ", ".join(words)


def scaled(profile: AirProfile, offset: float) -> AirProfile:
    """Return an air whose delays and jitter, both ways, are exp(``offset``) times as long; gaps stay."""
    factor = math.exp(offset)
    return dataclasses.replace(
        profile, uplink=_scaled(profile.uplink, factor), downlink=_scaled(profile.downlink, factor)
    )


def load_noise_profiles() -> Mapping[str, NoiseProfile]:
    """Read every noise profile. Raises ConfigError with file, line and the nearest key."""
    root = yamlfile.load(PROFILES)
    root.integer("schema", minimum=SCHEMA_VERSION, maximum=SCHEMA_VERSION)
    profiles = {name: _profile(name, node) for name, node in root.named_sections("profiles").items()}
    root.finish()
    return profiles


def load_noise_profile(name: str) -> NoiseProfile:
    """Return one noise profile. Raises ConfigError naming the nearest and the known ones."""
    profiles = load_noise_profiles()
    if name not in profiles:
        known = ", ".join(profiles)
        raise ConfigError(
            f"{PROFILES}: unknown noise profile {name!r}{did_you_mean(name, profiles)} Profiles: {known}.",
            next_step=f"name one of them, or {OFF}.",
        )
    return profiles[name]


def _profile(name: str, node: yamlfile.Node) -> NoiseProfile:
    return NoiseProfile(
        name=name,
        description=node.text("description", default=""),
        boot=node.quantity("boot", "ratio", minimum=0.0, maximum=DEVIATION_MAX),
        session=node.quantity("session", "ratio", minimum=0.0, maximum=DEVIATION_MAX),
        bad_boots=node.quantity("bad_boots", "ratio", default=0.0, minimum=0.0, maximum=1.0),
        bad_boot_factor=node.number("bad_boot_factor", default=1.0, minimum=1.0, maximum=10.0),
    )


def _scaled(impairment: Impairment, factor: float) -> Impairment:
    return dataclasses.replace(
        impairment,
        delay_us=min(round(impairment.delay_us * factor), _MAX_DELAY_US),
        jitter_us=min(round(impairment.jitter_us * factor), _MAX_DELAY_US),
    )


def _percent(ratio: float, *, sign: bool = False) -> str:
    return f"{100 * ratio:{'+' if sign else ''}.3g} %"

# SPDX-License-Identifier: Apache-2.0
"""A night on a rack: what its boots measure, as samples of the newest night, as boot values of all others."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from hil.boards.rack.noise import NoiseSettings
from hil.history.building import BootPoint, build
from hil.history.summary import SCHEMA_VERSION, BootedImage, MeasuredBoard, Summary
from hil.metrics.conditions import conditions_of
from hil.model import Case, Role, RunRecord
from hil.thresholds import Thresholds
from hil.virtual.noise import Noise, NoiseProfile, load_noise_profile
from tools.demo.figures import boot_values
from tools.demo.plan import NOISE, RACKS, SUITE, Board, Plan, Rack
from tools.demo.samples import Boots, Columns, measure

PAIRS: Sequence[tuple[Role, Role]] = (("candidate", "reference"), ("reference", "candidate"))
ROLES: Sequence[Role] = PAIRS[0]
RULER = "c7" * 32


@dataclass(frozen=True)
class Measured:
    """One case on one board; row n of each column is boot n, whose role is ``roles[n]``."""

    board: Board
    case: Case
    roles: tuple[Role, ...]
    columns: Columns
    warmup: int

    def of(self, role: Role) -> Columns:
        """Return the boots of one role."""
        rows = [n for n, one in enumerate(self.roles) if one == role]
        return {name: column[rows] for name, column in self.columns.items()}


@dataclass(frozen=True)
class Night:
    """A night of a rack, not yet measured; the same words give the same night."""

    plan: Plan
    rack: Rack
    number: int

    @property
    def run_id(self) -> str:
        return self.plan.run_id(self.rack, self.number)

    @property
    def started_utc(self) -> str:
        return f"{self.plan.started(self.rack, self.number):%Y-%m-%dT%H:%M:%SZ}"

    @property
    def commit(self) -> str:
        return self.plan.commit(self.number)

    @property
    def commit_words(self) -> dict[str, str]:
        return self.plan.commit_words(self.number)

    @property
    def present(self) -> tuple[Board, ...]:
        """The boards that give something that night."""
        return tuple(
            board for board in self.rack.boards if not self.plan.is_out(self.rack, board.id, self.number)
        )

    @property
    def roles(self) -> tuple[Role, ...]:
        """The order of the boots: candidate, reference, reference, candidate, …"""
        return tuple(role for pair in range(self.plan.boots) for role in PAIRS[pair % 2])

    @property
    def noise(self) -> Noise:
        return Noise(NoiseSettings(NOISE, self.plan.seed), _profile(), self.run_id)

    def image(self, role: Role, target: str) -> str:
        return self.plan.image(role, target, self.number)


@functools.cache
def _profile() -> NoiseProfile:
    return load_noise_profile(NOISE)


def measured(night: Night, cases: Sequence[Case]) -> Iterator[Measured]:
    """Measure every case on every board that is there."""
    roles, noise, plan = night.roles, night.noise, night.plan
    rng = np.random.default_rng([plan.seed, RACKS.index(night.rack), night.number])
    for board in night.present:
        drawn = np.array([noise.draw(board.id, boot).offset for boot in range(len(roles))])
        for case in cases:
            found: list[Columns] = []
            for role in ROLES:
                boots = Boots(
                    noise=drawn[np.array([one == role for one in roles])],
                    path=plan.path(night.rack, case.bench, role, night.number),
                    board=plan.board(night.rack, board.id, case.bench, night.number),
                    tail=plan.tail(case.bench, role, night.number),
                    rng=rng,
                )
                columns, warmup = measure(case, boots)
                found.append(columns)
            yield Measured(board, case, roles, _in_turns(roles, *found), warmup)


def _in_turns(roles: Sequence[Role], candidate: Columns, reference: Columns) -> Columns:
    """Return the boots of both in the order in which they were measured."""
    here = np.array([role == "candidate" for role in roles])
    turns = {}
    for name, own in candidate.items():
        turns[name] = np.empty((len(roles), own.shape[1]), dtype=own.dtype)
        turns[name][here], turns[name][~here] = own, reference[name]
    return turns


def boots_of(night: Night, found: Sequence[Measured], thresholds: Mapping[str, Thresholds]) -> Summary:
    """Return what the history keeps of the night's boots."""
    points = (point for one in found for point in _points(night, one, thresholds))
    return Summary(
        schema=SCHEMA_VERSION,
        run_id=night.run_id,
        started_utc=night.started_utc,
        rack=night.rack.name,
        suite=SUITE,
        trigger="nightly",
        commit=night.commit,
        dirty=False,
        boot_values=build(_boards(night, found), _images(night, found), points),
    )


def _points(night: Night, one: Measured, thresholds: Mapping[str, Thresholds]) -> Iterator[BootPoint]:
    for metric in thresholds[one.case.bench].metrics_of(one.case.parameters):
        values = boot_values(metric, one.columns, one.warmup)
        if values is None:
            continue
        samples = next(iter(one.columns.values())).shape[1] - one.warmup
        for boot, (role, value) in enumerate(zip(one.roles, values.tolist(), strict=True)):
            sha256 = night.image(role, one.board.target)
            yield BootPoint(
                one.board.id, role, boot, sha256, one.case.case_id, metric.name, value, samples, 0
            )


def _boards(night: Night, found: Sequence[Measured]) -> list[MeasuredBoard]:
    """Return the boards with the conditions that the history takes from records."""
    boards = {one.board: one for one in found}
    return [
        MeasuredBoard(board.id, board.target, "virtual", conditions_of([record(night, one, 0)]))
        for board, one in boards.items()
    ]


def _images(night: Night, found: Sequence[Measured]) -> list[BootedImage]:
    rulers = {one.case.bench: RULER for one in found}
    targets = dict.fromkeys(one.board.target for one in found)
    return [
        BootedImage(role, target, night.image(role, target), rulers) for role in ROLES for target in targets
    ]


def record(night: Night, one: Measured, boot: int) -> RunRecord:
    """Return one boot's record, without its samples."""
    role = one.roles[boot]
    return RunRecord(
        run_id=night.run_id,
        rack=night.rack.name,
        board=one.board.id,
        target=one.board.target,
        kind="virtual",
        role=role,
        boot_index=boot,
        bench=one.case.bench,
        parameters=one.case.parameters,
        firmware_sha256=night.image(role, one.board.target),
        ruler_hash=RULER,
        protocol_version=1,
        clock="esp_timer",
        started_utc=night.started_utc,
        warmup_rows=one.warmup,
        columns={},
        environment={
            **night.plan.facts(night.rack, night.number),
            "noise": night.noise.environment(one.board.id, boot),
        },
    )


def full_record(night: Night, one: Measured, boot: int) -> RunRecord:
    """Return one boot's record with its samples."""
    columns = {name: tuple(column[boot].tolist()) for name, column in one.columns.items()}
    return replace(record(night, one, boot), columns=columns)

# SPDX-License-Identifier: Apache-2.0
"""The work of ``hil metrics``: a stored run pushed again, and a retired board's groups taken away."""

from __future__ import annotations

import datetime
import sys
from collections.abc import Sequence

from hil.base.errors import ConfigError, RigError
from hil.reports.gateway_groups import Held, delete_groups, held_groups
from hil.reports.metrics import Group
from hil.reports.pushgateway import groups_of, push
from hil.store import JudgedRun
from hil.store.files import typed_path

TIMEOUT_S = 15.0


def push_again(url: str, run: JudgedRun, *, force: bool = False) -> None:
    """Push a stored run, and say what was pushed.

    Raises:
        ConfigError: the run names no board, or the gateway holds a newer one of the same boards.
        RigError: the gateway did not take it.
    """
    try:
        groups = groups_of(run)
    except ValueError as error:
        raise ConfigError(
            f"{run.path} makes no metrics: {error}.",
            next_step=f"judge it again: hil gate {typed_path(run.path)}",
        ) from error
    if not groups:
        raise ConfigError(f"{run.path} names no board, neither in run.json nor in its verdict.")
    held = held_groups(url, timeout_s=TIMEOUT_S)
    if not force:
        _refuse_older(run.run_id, groups, held)
    pushed = push(url, run.path, groups, timeout_s=TIMEOUT_S)
    for group in pushed.groups:
        print(f"pushed {group.job} of {group.name}")
    for warning in pushed.warnings:
        print(f"warning: {warning}", file=sys.stderr)
    if pushed.failure:
        raise RigError(pushed.failure)


def _refuse_older(run_id: str, groups: Sequence[Group], held: Sequence[Held]) -> None:
    there = {one.place: one for one in held}
    for group in groups:
        one = there.get((group.job, group.rack, group.board, group.product))
        started = group.families.value_of("hil_run_timestamp_seconds")
        if one and one.run_started_s is not None and (started is None or started < one.run_started_s):
            raise ConfigError(
                f"the Pushgateway holds a newer run of {group.name} ({group.job}): "
                f"{one.run_id or 'unnamed'}; {run_id} would replace it.",
                next_step="leave it, or push all the same: --force.",
            )


def retire(
    url: str, rack: str, boards: Sequence[str], *, product: str | None = None, dry_run: bool = False
) -> None:
    """Take every group of ``boards`` away, of all jobs, and say which there were.

    Of a product alone where one is named; "" is what was pushed without one.

    Raises:
        ConfigError: the gateway holds nothing of one of them; nothing was taken away.
        RigError: the gateway does not answer, or refuses.
    """
    everything = held_groups(url, timeout_s=TIMEOUT_S)
    held = [one for one in everything if product is None or one.product == product]
    unknown = [board for board in boards if (rack, board) not in {(one.rack, one.board) for one in held}]
    if unknown:
        known = ", ".join(sorted({one.name for one in everything}))
        of = "" if product is None else f" with {product}" if product else " without a product"
        wanted = ", ".join(f"{rack}/{board}" for board in unknown)
        raise ConfigError(
            f"the Pushgateway at {url} holds nothing of {wanted}{of}.",
            next_step=f"it knows: {known}." if known else "it holds no board at all.",
        )
    chosen = [one for one in held if one.rack == rack and one.board in boards]
    if not dry_run:
        delete_groups(url, chosen, timeout_s=TIMEOUT_S)
    for one in chosen:
        what = "would delete" if dry_run else "deleted"
        run = f", run {one.run_id}" if one.run_id else ""
        print(f"{what} {one.job} of {one.name}: pushed {_utc(one.pushed_s)}{run}")


def _utc(seconds: float) -> str:
    return datetime.datetime.fromtimestamp(seconds, datetime.UTC).strftime("%Y-%m-%d %H:%M UTC")

"""The groups that racks push of themselves at a run's end, from the history of their health."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from hil.base.errors import HilError
from hil.boards.health import HEALTH_FILE, read_lines, summarise
from hil.reports.metrics import Group
from hil.reports.metrics_rack import rack_group
from hil.store.run_info import utc_now


def rack_groups(history: Path, racks: Collection[str]) -> tuple[list[Group], str]:
    """Return one group for each of ``racks`` that the history knows, and a sentence on what stood in the way.

    ``history`` is the folder of health.jsonl. Without the file there is no group, and nothing to say.
    """
    try:
        known = summarise(read_lines(history / HEALTH_FILE), now_utc=utc_now())
    except HilError as error:
        return [], f"Nothing of the rack's health was pushed: {error}"
    return [rack_group(health) for health in known if health.rack in racks], ""

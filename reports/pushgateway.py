# SPDX-License-Identifier: Apache-2.0
"""Pushes a run's metrics to a Prometheus Pushgateway; what fails is a sentence, never an exception."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from http.client import HTTPException
from urllib.error import HTTPError

from prometheus_client.exposition import push_to_gateway

from hil.base.errors import HilError
from hil.base.gateway_url import problem_of
from hil.history import history_of
from hil.reports.gateway import explain, sender
from hil.reports.metrics import Group, board_groups, rack_groups
from hil.store import JudgedRun


def push_run(url: str, run: JudgedRun, *, timeout_s: float) -> str | None:
    """Push one group a board and one of the rack; return a warning, or None where all went well.

    A group replaces the one that the board's run before left there (PUT), so no figure looks newer than it
    is. After ``timeout_s`` altogether, or the first failure, the rest is given up. User name and password
    come from the environment: HIL_PUSHGATEWAY_USER and HIL_PUSHGATEWAY_PASSWORD.
    """
    if problem := problem_of(url):
        return f"No metrics were pushed: {problem}"
    try:
        boards = board_groups(run.info, run.verdict)
    except (HilError, ValueError) as error:
        return f"No metrics were pushed: {error}"
    if not boards:
        return f"No metrics were pushed: {run.path} names no board, neither in run.json nor in its verdict."
    racks, problem = rack_groups(history_of(run.path.parent), {group.rack for group in boards})
    groups = [*boards, *racks]
    attempt = _Push(url, groups, timeout_s)
    # name look-ups and slow answers have no deadline of their own in urllib, so another thread waits for them
    thread = threading.Thread(target=attempt.run, name="pushgateway", daemon=True)
    thread.start()
    thread.join(timeout_s)
    failure = attempt.failure()
    return " ".join(filter(None, [failure, problem, "" if failure else _clashes(groups)])) or None


def _clashes(groups: Sequence[Group]) -> str:
    names = sorted({name for group in groups for name in group.families.clashes})
    if not names:
        return ""
    return (
        f"Not pushed to the Pushgateway: {', '.join(names)}, because another metric comes to the same name "
        "there. Next: rename it in the thresholds file; docs/operate/metrics.md tells how names are made."
    )


class _Push:
    """One attempt to push all groups, in their order."""

    def __init__(self, url: str, groups: Sequence[Group], timeout_s: float) -> None:
        self._url = url
        self._groups = groups
        self._timeout_s = timeout_s
        self._deadline = time.monotonic() + timeout_s
        self._reason: tuple[str, str] | None = None
        self.pushed = 0

    def run(self) -> None:
        try:
            for group in self._groups:
                left_s = self._deadline - time.monotonic()
                if left_s <= 0:
                    return
                self._push(group, left_s)
                self.pushed += 1
        except (OSError, HTTPException, ValueError) as error:
            self._reason = explain(self._clearer(error), self._timeout_s)

    def _clearer(self, error: Exception) -> Exception:
        """Return the answer to a short request where the push itself broke off without one.

        A server that refuses at once may close the connection before it has read everything, and its answer
        is lost with it.
        """
        left_s = self._deadline - time.monotonic()
        if isinstance(error, HTTPError) or left_s <= 0:
            return error
        try:
            sender(f"{self._url.rstrip('/')}/-/ready", "GET", left_s, [], None)()
        except HTTPError as answer:
            return answer
        except (OSError, HTTPException, ValueError):
            pass
        return error

    def _push(self, group: Group, left_s: float) -> None:
        push_to_gateway(
            self._url, group.job, group.families, grouping_key=group.key, timeout=left_s, handler=sender
        )

    def failure(self) -> str:
        """Return what went wrong, "" where every group arrived."""
        pushed = self.pushed  # the thread may still be at it
        missing = self._groups[pushed:]
        if not missing:
            return ""
        what, way_out = self._reason or explain(TimeoutError(), self._timeout_s)
        boards, many = (sum(bool(group.board) for group in groups) for groups in (missing, self._groups))
        of_boards = f"{boards} of {many} boards" if boards else ""
        of_racks = " and ".join(f"rack {group.rack}" for group in missing if not group.board)
        whose = " and of ".join(filter(None, [of_boards, of_racks]))
        return (
            f"Metrics of {whose} were not pushed to the Pushgateway at {self._url}: {what}. Next: {way_out}"
        )

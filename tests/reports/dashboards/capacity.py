# SPDX-License-Identifier: Apache-2.0
"""Do runs wait for boards: waits, board time, utilisation."""

from __future__ import annotations

from typing import Any

from tests.reports.dashboards.parts import (
    BOARD,
    NOW,
    RACK,
    REMARK,
    WINDOW,
    WINDOW_WORDS,
    Panel,
    Query,
    build,
    rack_variables,
    stat_panel,
    table_panel,
    text_panel,
    time_panel,
)


def capacity() -> Any:
    about = f"How long runs waited for boards, and what the boards' time went to. {WINDOW_WORDS} {REMARK}"
    rows = [[text_panel(about)], _waits(), _time(), _boards()]
    title = "HIL: do runs wait for boards?"
    return build(
        "hil-capacity",
        title,
        "Waits, board-minutes and utilisation of the racks that measure.",
        rack_variables(),
        rows,
        runs=NOW,
    )


def _waits() -> list[Panel]:
    return [
        stat_panel(
            "Lease waits, p95",
            "s",
            Query(f'hil_rack_lease_wait_seconds{{stat="p95", {WINDOW}}}', RACK),
            width=6,
            bad_from=1800,
            help_text="One run in twenty waited so long for its boards, or longer.",
        ),
        time_panel(
            "Waits for boards ($kind)",
            "s",
            Query(f"hil_rack_lease_wait_seconds{{{WINDOW}}}", "{{stat}} {{rack}} ({{kind}})"),
            width=18,
            help_text="From asking for the boards to having them, by nearest rank.",
        ),
    ]


def _time() -> list[Panel]:
    return [
        time_panel(
            "Board-minutes of the window ($kind)",
            "m",
            Query(f"rack:hil_rack_board_seconds:sum{{{WINDOW}}} / 60", "{{use}} {{rack}} ({{kind}})"),
            help_text="Time that runs held boards, and measured in it; the rest is set-up and turns.",
        ),
        time_panel(
            "Utilisation ($kind)",
            "percentunit",
            Query(f"hil_rack_board_utilisation_ratio{{{WINDOW}}}", BOARD),
            help_text="Share of the window, since the board was first seen, in which a run held it.",
        ),
    ]


def _boards() -> list[Panel]:
    minutes = f"sum by (rack, board, kind, target, use) (hil_rack_board_seconds{{{WINDOW}}}) / 60"
    return [
        table_panel(
            "Board-minutes by board ($kind)",
            "m",
            Query(minutes, f"{{{{use}}}} {BOARD}", once=True, as_table=True),
            width=24,
            help_text="Held by runs, and measured in them, in the window.",
        ),
    ]

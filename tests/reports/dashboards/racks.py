# SPDX-License-Identifier: Apache-2.0
"""What the lab keeper asks: are the racks sound?"""

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


def racks() -> Any:
    about = f"What went wrong on the racks, and whose fault it was. {WINDOW_WORDS} {REMARK}"
    rows = [[text_panel(about)], _numbers(), _faults(), _seen(), _boards()]
    title = "HIL: are the racks sound?"
    return build(
        "hil-racks",
        title,
        "Faults, time to recovery and quarantine of the racks that measure.",
        rack_variables(),
        rows,
        runs=NOW,
    )


def _numbers() -> list[Panel]:
    return [
        stat_panel(
            "Runs in the window",
            "none",
            Query(f"hil_rack_runs{{{WINDOW}}}", RACK),
            width=12,
            help_text="Runs of the rack, whatever became of them.",
        ),
        stat_panel(
            "Boards in quarantine",
            "none",
            Query(f"rack:hil_rack_board_quarantined:sum{{{NOW}}}", RACK),
            width=12,
            bad_from=1,
            help_text="They take part in no run until somebody releases them.",
        ),
    ]


def _faults() -> list[Panel]:
    return [
        time_panel(
            "Faults of the window by owner ($kind)",
            "none",
            Query(f"hil_rack_infrastructure_faults{{{WINDOW}}}", "{{owner}} {{rack}} ({{kind}})"),
            help_text="Whose fault it was; the rig's are the infrastructure's.",
        ),
        time_panel(
            "Runs that the rig failed ($kind)",
            "percentunit",
            Query(f"hil_rack_board_failed_ratio{{{WINDOW}}}", BOARD),
            help_text="Of the runs that the board took part in.",
        ),
    ]


def _seen() -> list[Panel]:
    return [
        time_panel(
            "Since a board was last seen ($kind)",
            "s",
            Query(f"time() - hil_rack_board_seen_timestamp_seconds{{{NOW}}}", BOARD),
            width=12,
            help_text="Since the start of the latest run that knew the board.",
        ),
    ]


def _boards() -> list[Panel]:
    return [
        table_panel(
            "In quarantine ($kind)",
            "none",
            Query(f"hil_rack_board_quarantined{{{NOW}}} == 1", BOARD, once=True, as_table=True),
            hidden=("job", "Value"),
            width=12,
            help_text="Release a board with hil board release.",
        ),
        time_panel(
            "Time to recovery ($kind)",
            "s",
            Query(f"hil_rack_board_recovery_seconds{{{WINDOW}}}", BOARD),
            width=12,
            help_text="Mean, from the first failed run to the next sound one. One still down is left out.",
        ),
    ]

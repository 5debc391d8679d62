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
    build,
    rack_variables,
    stat_panel,
    table_panel,
    text_panel,
    time_panel,
)


def racks() -> Any:
    about = f"What went wrong on the racks, and whose fault it was. {WINDOW_WORDS} {REMARK}"
    runs = stat_panel(
        "Runs in the window",
        "none",
        "Runs of the rack, whatever became of them.",
        (f"hil_rack_runs{{{WINDOW}}}", RACK),
        width=12,
    )
    quarantine = stat_panel(
        "Boards in quarantine",
        "none",
        "They take part in no run until somebody releases them.",
        (f"rack:hil_rack_board_quarantined:sum{{{NOW}}}", RACK),
        width=12,
        bad_from=1,
    )
    faults = time_panel(
        "Faults of the window by owner ($kind)",
        "none",
        "Whose fault it was; the rig's are the infrastructure's.",
        (f"hil_rack_infrastructure_faults{{{WINDOW}}}", "{{owner}} {{rack}} ({{kind}})"),
    )
    failed = time_panel(
        "Runs that the rig failed ($kind)",
        "percentunit",
        "Of the runs that the board took part in.",
        (f"hil_rack_board_failed_ratio{{{WINDOW}}}", BOARD),
    )
    seen = time_panel(
        "Since a board was last seen ($kind)",
        "s",
        "Since the start of the latest run that knew the board.",
        (f"time() - hil_rack_board_seen_timestamp_seconds{{{NOW}}}", BOARD),
    )
    kept_out = table_panel(
        "In quarantine ($kind)",
        "none",
        "Release a board with hil board release.",
        (f"hil_rack_board_quarantined{{{NOW}}} == 1", BOARD),
        hidden=("job", "Value"),
    )
    recovery = time_panel(
        "Time to recovery ($kind)",
        "s",
        "Mean, from the first failed run to the next sound one. One still down is left out.",
        (f"hil_rack_board_recovery_seconds{{{WINDOW}}}", BOARD),
    )
    rows = [[text_panel(about)], [runs, quarantine], [faults, failed], [seen], [kept_out, recovery]]
    description = "Faults, time to recovery and quarantine of the racks that measure."
    return build("hil-racks", "HIL: are the racks sound?", description, rack_variables(), rows, runs=NOW)

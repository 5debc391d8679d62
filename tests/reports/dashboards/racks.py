# SPDX-License-Identifier: Apache-2.0
"""What the lab keeper asks: are the racks sound, and do runs wait for their boards?"""

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
    rows = [[text_panel(about)], _numbers(), _faults(), _trust(), _boards()]
    title = "HIL: are the racks sound?"
    return build(
        "hil-racks",
        title,
        "Faults, flakes and quarantine of the racks that measure.",
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
            width=6,
            help_text="Runs of the rack, whatever became of them.",
        ),
        stat_panel(
            "Boards in quarantine",
            "none",
            Query(f"rack:hil_rack_board_quarantined:sum{{{NOW}}}", RACK),
            width=6,
            bad_from=1,
            help_text="They take part in no run until somebody releases them.",
        ),
        stat_panel(
            "Flakes",
            "percentunit",
            Query(f"hil_rack_flaked_ratio{{{WINDOW}}}", RACK),
            width=6,
            bad_from=0.02,
            help_text="Share of series judged again with the same firmware that blocked, and then passed.",
        ),
        stat_panel(
            "False regressions",
            "percentunit",
            Query(f"hil_rack_false_regression_ratio{{{WINDOW}}}", RACK),
            width=6,
            bad_from=0.01,
            help_text="Share of the comparisons that could be checked, which had blocked for nothing.",
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


def _trust() -> list[Panel]:
    return [
        time_panel(
            "Flakes and false regressions ($kind)",
            "percentunit",
            Query(f"hil_rack_flaked_ratio{{{WINDOW}}}", f"flakes {RACK}"),
            Query(f"hil_rack_false_regression_ratio{{{WINDOW}}}", f"false regressions {RACK}"),
            help_text="How often the gate's word did not hold when it was asked again.",
        ),
        time_panel(
            "Since a board was last seen ($kind)",
            "s",
            Query(f"time() - hil_rack_board_seen_timestamp_seconds{{{NOW}}}", BOARD),
            width=6,
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


def capacity() -> Any:
    about = f"How long runs waited for boards, and what the boards' time went to. {WINDOW_WORDS} {REMARK}"
    rows = [[text_panel(about)], _waits(), _time(), _board_time()]
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


def _board_time() -> list[Panel]:
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

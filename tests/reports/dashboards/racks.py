# SPDX-License-Identifier: Apache-2.0
"""HIL racks: what the lab keeper looks at: board time, faults, waits, flakes, quarantine."""

from __future__ import annotations

from typing import Any

from tests.reports.dashboards.parts import (
    REMARK,
    Panel,
    Query,
    build,
    datasource_variable,
    kind_variable,
    label_variable,
    stat_panel,
    table_panel,
    text_panel,
    time_panel,
)

_NOW = 'rack=~"$rack", kind=~"$kind"'
_WINDOW = f'{_NOW}, days="$days"'
_RACK = "{{rack}} ({{kind}})"
_BOARD = "{{rack}}/{{board}} ({{kind}})"


def racks() -> Any:
    variables = [
        datasource_variable(),
        kind_variable(),
        label_variable("rack", 'hil_rack_runs{kind=~"$kind"}'),
        label_variable("days", 'hil_rack_runs{kind=~"$kind"}', one=True),
    ]
    about = (
        f"Figures over a window of **$days days** that ends with the rack's latest run. {REMARK} "
        "docs/operate/metrics.md says how each is reckoned; `hil rack health` shows the same on a terminal."
    )
    rows = [[text_panel(about)], _numbers(), _time(), _faults(), _trust(), _boards()]
    return build("hil-racks", "HIL racks", "Health of the racks that measure.", variables, rows)


def _numbers() -> list[Panel]:
    return [
        stat_panel(
            "Runs in the window",
            "none",
            Query(f"hil_rack_runs{{{_WINDOW}}}", _RACK),
            width=5,
            help_text="Runs of the rack, whatever became of them.",
        ),
        stat_panel(
            "Boards in quarantine",
            "none",
            Query(f"rack:hil_rack_board_quarantined:sum{{{_NOW}}}", _RACK),
            width=5,
            bad_from=1,
            help_text="They take part in no run until somebody releases them.",
        ),
        stat_panel(
            "Lease waits, p95",
            "s",
            Query(f'hil_rack_lease_wait_seconds{{stat="p95", {_WINDOW}}}', _RACK),
            width=5,
            bad_from=1800,
            help_text="One run in twenty waited so long for its boards, or longer.",
        ),
        stat_panel(
            "Flakes",
            "percentunit",
            Query(f"hil_rack_flaked_ratio{{{_WINDOW}}}", _RACK),
            width=5,
            bad_from=0.02,
            help_text="Share of series judged again with the same firmware that blocked, and then passed.",
        ),
        stat_panel(
            "False regressions",
            "percentunit",
            Query(f"hil_rack_false_regression_ratio{{{_WINDOW}}}", _RACK),
            width=4,
            bad_from=0.01,
            help_text="Share of the comparisons that could be checked, which had blocked for nothing.",
        ),
    ]


def _time() -> list[Panel]:
    return [
        time_panel(
            "Board-minutes of the window ($kind)",
            "m",
            Query(f"rack:hil_rack_board_seconds:sum{{{_WINDOW}}} / 60", "{{use}} {{rack}} ({{kind}})"),
            help_text="Time that runs held boards, and measured in it; the rest is set-up and turns.",
        ),
        time_panel(
            "Utilisation ($kind)",
            "percentunit",
            Query(f"hil_rack_board_utilisation_ratio{{{_WINDOW}}}", _BOARD),
            help_text="Share of the window, since the board was first seen, in which a run held it.",
        ),
    ]


def _faults() -> list[Panel]:
    return [
        time_panel(
            "Faults of the window by owner ($kind)",
            "none",
            Query(f"hil_rack_infrastructure_faults{{{_WINDOW}}}", "{{owner}} {{rack}} ({{kind}})"),
            help_text="Whose fault it was; the rig's are the infrastructure's.",
        ),
        time_panel(
            "Runs that the rig failed ($kind)",
            "percentunit",
            Query(f"hil_rack_board_failed_ratio{{{_WINDOW}}}", _BOARD),
            help_text="Of the runs that the board took part in.",
        ),
    ]


def _trust() -> list[Panel]:
    return [
        time_panel(
            "Waits for boards ($kind)",
            "s",
            Query(f"hil_rack_lease_wait_seconds{{{_WINDOW}}}", "{{stat}} {{rack}} ({{kind}})"),
            help_text="From asking for the boards to having them, by nearest rank.",
        ),
        time_panel(
            "Flakes and false regressions ($kind)",
            "percentunit",
            Query(f"hil_rack_flaked_ratio{{{_WINDOW}}}", f"flakes {_RACK}"),
            Query(f"hil_rack_false_regression_ratio{{{_WINDOW}}}", f"false regressions {_RACK}"),
            help_text="How often the gate's word did not hold when it was asked again.",
        ),
    ]


def _boards() -> list[Panel]:
    minutes = f"sum by (rack, board, kind, target, use) (hil_rack_board_seconds{{{_WINDOW}}}) / 60"
    return [
        table_panel(
            "In quarantine ($kind)",
            "none",
            Query(f"hil_rack_board_quarantined{{{_NOW}}} == 1", _BOARD, once=True, as_table=True),
            hidden=("job", "Value"),
            width=6,
            help_text="Release a board with hil board release.",
        ),
        table_panel(
            "Board-minutes by board ($kind)",
            "m",
            Query(minutes, f"{{{{use}}}} {_BOARD}", once=True, as_table=True),
            width=6,
            help_text="Held by runs, and measured in them, in the window.",
        ),
        time_panel(
            "Time to recovery ($kind)",
            "s",
            Query(f"hil_rack_board_recovery_seconds{{{_WINDOW}}}", _BOARD),
            width=6,
            help_text="Mean, from the first failed run to the next sound one. One still down is left out.",
        ),
        time_panel(
            "Since a board was last seen ($kind)",
            "s",
            Query(f"time() - hil_rack_board_seen_timestamp_seconds{{{_NOW}}}", _BOARD),
            width=6,
            help_text="Since the start of the latest run that knew the board.",
        ),
    ]

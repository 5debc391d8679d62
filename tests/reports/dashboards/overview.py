# SPDX-License-Identifier: Apache-2.0
"""Did the latest runs pass: how they ended, which limits are broken, what changed, are the boards up."""

from __future__ import annotations

from typing import Any

from tests.reports.dashboards.parts import (
    REMARK,
    build,
    datasource_variable,
    kind_variable,
    label_variable,
    product_variable,
    stat_panel,
    state_panel,
    table_panel,
    text_panel,
    time_panel,
)

_CHOSEN = 'job=~"$job", rack=~"$rack", product=~"$product", kind=~"$kind"'
_PLACE = "{{job}} {{rack}} {{product}} ({{kind}})"
_CHANGE = f"job_rack_target:hil_comparison_change_ratio:max{{{_CHOSEN}}}"
_EXITS = {
    "0": ("pass", "green"),
    "1": ("firmware", "red"),
    "2": ("configuration", "purple"),
    "3": ("rig", "orange"),
    "4": ("undecided, incomplete", "yellow"),
}


def overview() -> Any:
    variables = [
        datasource_variable(),
        kind_variable("hil_run_info"),
        label_variable("job", 'hil_run_info{kind=~"$kind"}'),
        label_variable("rack", 'hil_run_info{kind=~"$kind", job=~"$job"}'),
        product_variable('hil_run_info{kind=~"$kind", job=~"$job", rack=~"$rack"}'),
    ]
    about = (
        f"What the latest runs pushed. {REMARK} The verdict itself is in each run's summary and report; "
        "this page needs the recording rules of docs/operate/metrics/rules.yaml."
    )
    ended = state_panel(
        "How runs ended ($kind)",
        "Exit code of the whole run; it stands until the next run of the job.",
        (f"max by (job, rack, product, kind) (hil_run_exit_code{{{_CHOSEN}}})", _PLACE),
        _EXITS,
    )
    up = f"job_rack:hil_board_up:sum{{{_CHOSEN}}} / job_rack:hil_board_up:count{{{_CHOSEN}}}"
    sampled = time_panel(
        "Boards that gave samples, of those planned ($kind)",
        "percentunit",
        "Boards in quarantine, or ruled out by their limits, are not planned.",
        (up, _PLACE),
    )
    rows = [[text_panel(about)], _numbers(), [ended, sampled], _tables(), _courses()]
    description = "Verdicts, broken limits, changes and boards of the latest HIL runs."
    title = "HIL: did the latest runs pass?"
    return build("hil-overview", title, description, variables, rows, runs=_CHOSEN)


def _numbers() -> list[Any]:
    quarantined = 'sum by (kind) (rack:hil_rack_board_quarantined:sum{rack=~"$rack", kind=~"$kind"})'
    return [
        stat_panel(
            "Boards with samples",
            "none",
            "Boards of the latest run of each job and rack.",
            (f"sum by (kind) (job_rack:hil_board_up:sum{{{_CHOSEN}}})", "{{kind}} up"),
            (f"sum by (kind) (job_rack:hil_board_up:count{{{_CHOSEN}}})", "{{kind}} planned"),
            width=6,
        ),
        stat_panel(
            "Blocking limits broken",
            "none",
            "Series whose limit the gate calls broken, in the latest run of each board.",
            (f"sum by (kind) (job_rack_board:hil_limits_broken:count{{{_CHOSEN}}})", "{{kind}}"),
            width=5,
            bad_from=1,
        ),
        stat_panel(
            "Comparisons regressed",
            "none",
            "Blocking comparisons against base or reference; each counts once for all its boards.",
            (f"sum by (kind) (job_rack_target:hil_comparisons_regressed:count{{{_CHOSEN}}})", "{{kind}}"),
            width=5,
            bad_from=1,
        ),
        stat_panel(
            "Boards in quarantine",
            "none",
            "They take part in no run until somebody releases them.",
            (quarantined, "{{kind}}"),
            width=4,
            bad_from=1,
        ),
        stat_panel(
            "Oldest figures",
            "s",
            "Since the start of the run whose figures a board still shows.",
            (f"max by (job, kind) (time() - hil_run_timestamp_seconds{{{_CHOSEN}}})", "{{job}} ({{kind}})"),
            width=4,
        ),
    ]


def _tables() -> list[Any]:
    broken = (
        f'hil_series_outcome{{blocking="true", outcome="regressed", {_CHOSEN}}} '
        "* on (job, rack, board, product) group_left (commit, run_id, url) hil_run_info"
    )
    return [
        table_panel(
            "Broken limits ($kind)",
            "none",
            "Every blocking series that is beyond its limit, with the commit it was measured at.",
            (broken, "{{metric}} of {{case}} on {{board}} {{product}} ({{kind}})"),
            hidden=("blocking", "outcome", "case_hash", "Value"),
        ),
        table_panel(
            "Largest changes ($kind)",
            "percentunit",
            "The twenty largest changes against base or reference, whatever the gate says of them.",
            (
                f"{_CHANGE} and topk(20, abs({_CHANGE}))",
                "{{metric}} of {{case}} on {{target}} {{product}} ({{kind}})",
            ),
            hidden=("case_hash",),
        ),
    ]


def _courses() -> list[Any]:
    shown = (
        ("limits broken", "limits_broken", "As many as the latest run of each board broke, over time."),
        (
            "series judged",
            "series_blocking",
            "If it falls, less is watched: a board is missing, or a suite became shorter.",
        ),
    )
    return [
        time_panel(
            f"Blocking {what} ($kind)",
            "none",
            help_text,
            (f"sum by (job, rack, product, kind) (job_rack_board:hil_{name}:count{{{_CHOSEN}}})", _PLACE),
        )
        for what, name, help_text in shown
    ]

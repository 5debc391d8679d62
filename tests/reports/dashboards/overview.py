# SPDX-License-Identifier: Apache-2.0
"""Did the latest runs pass: how they ended, which limits are broken, what changed, are the boards up."""

from __future__ import annotations

from typing import Any

from tests.reports.dashboards.parts import (
    REMARK,
    Query,
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
    rows = [
        [text_panel(about)],
        _numbers(),
        [
            state_panel(
                "How runs ended ($kind)",
                Query(f"max by (job, rack, product, kind) (hil_run_exit_code{{{_CHOSEN}}})", _PLACE),
                _EXITS,
                help_text="Exit code of the whole run; it stands until the next run of the job.",
            ),
            time_panel(
                "Boards that gave samples, of those planned ($kind)",
                "percentunit",
                Query(
                    f"job_rack:hil_board_up:sum{{{_CHOSEN}}} / job_rack:hil_board_up:count{{{_CHOSEN}}}",
                    _PLACE,
                ),
                help_text="Boards in quarantine, or ruled out by their limits, are not planned.",
            ),
        ],
        _tables(),
        _courses(),
    ]
    description = "Verdicts, broken limits, changes and boards of the latest HIL runs."
    title = "HIL: did the latest runs pass?"
    return build("hil-overview", title, description, variables, rows, runs=_CHOSEN)


def _numbers() -> list[Any]:
    return [
        stat_panel(
            "Boards with samples",
            "none",
            Query(f"sum by (kind) (job_rack:hil_board_up:sum{{{_CHOSEN}}})", "{{kind}} up"),
            Query(f"sum by (kind) (job_rack:hil_board_up:count{{{_CHOSEN}}})", "{{kind}} planned"),
            width=6,
            help_text="Boards of the latest run of each job and rack.",
        ),
        stat_panel(
            "Blocking limits broken",
            "none",
            Query(f"sum by (kind) (job_rack_board:hil_limits_broken:count{{{_CHOSEN}}})", "{{kind}}"),
            width=5,
            bad_from=1,
            help_text="Series whose limit the gate calls broken, in the latest run of each board.",
        ),
        stat_panel(
            "Comparisons regressed",
            "none",
            Query(
                f"sum by (kind) (job_rack_target:hil_comparisons_regressed:count{{{_CHOSEN}}})", "{{kind}}"
            ),
            width=5,
            bad_from=1,
            help_text="Blocking comparisons against base or reference; each counts once for all its boards.",
        ),
        stat_panel(
            "Boards in quarantine",
            "none",
            Query(
                'sum by (kind) (rack:hil_rack_board_quarantined:sum{rack=~"$rack", kind=~"$kind"})',
                "{{kind}}",
            ),
            width=4,
            bad_from=1,
            help_text="They take part in no run until somebody releases them.",
        ),
        stat_panel(
            "Oldest figures",
            "s",
            Query(
                f"max by (job, kind) (time() - hil_run_timestamp_seconds{{{_CHOSEN}}})", "{{job}} ({{kind}})"
            ),
            width=4,
            help_text="Since the start of the run whose figures a board still shows.",
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
            Query(
                broken, "{{metric}} of {{case}} on {{board}} {{product}} ({{kind}})", once=True, as_table=True
            ),
            hidden=("blocking", "outcome", "case_hash", "Value"),
            help_text="Every blocking series that is beyond its limit, with the commit it was measured at.",
        ),
        table_panel(
            "Largest changes ($kind)",
            "percentunit",
            Query(
                f"{_CHANGE} and topk(20, abs({_CHANGE}))",
                "{{metric}} of {{case}} on {{target}} {{product}} ({{kind}})",
                once=True,
                as_table=True,
            ),
            hidden=("case_hash",),
            help_text="The twenty largest changes against base or reference, whatever the gate says of them.",
        ),
    ]


def _courses() -> list[Any]:
    return [
        time_panel(
            "Blocking limits broken ($kind)",
            "none",
            Query(
                f"sum by (job, rack, product, kind) (job_rack_board:hil_limits_broken:count{{{_CHOSEN}}})",
                _PLACE,
            ),
            help_text="As many as the latest run of each board broke, over time.",
        ),
        time_panel(
            "Blocking series judged ($kind)",
            "none",
            Query(
                f"sum by (job, rack, product, kind) (job_rack_board:hil_series_blocking:count{{{_CHOSEN}}})",
                _PLACE,
            ),
            help_text="If it falls, less is watched: a board is missing, or a suite became shorter.",
        ),
    ]

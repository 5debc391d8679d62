# SPDX-License-Identifier: Apache-2.0
"""How has a latency moved: p50, p95 and p99 of one figure by board and case, beside the limits in force."""

from __future__ import annotations

from typing import Any

from tests.reports.dashboards.parts import (
    REMARK,
    Panel,
    build,
    datasource_variable,
    kind_variable,
    label_variable,
    product_variable,
    table_panel,
    text_panel,
    time_panel,
)

_WHERE = (
    'job=~"$job", rack=~"$rack", board=~"$board", product=~"$product", '
    'bench=~"$bench", case=~"$case", kind=~"$kind"'
)
_SERIES = "{{case}} on {{rack}}/{{board}} {{product}} ({{kind}}, {{job}})"


def latency() -> Any:
    kind = 'kind=~"$kind"'
    variables = [
        datasource_variable(),
        kind_variable("hil_case_samples"),
        label_variable("job", f"hil_case_samples{{{kind}}}"),
        label_variable("rack", f'hil_case_samples{{{kind}, job=~"$job"}}'),
        label_variable("board", f'hil_case_samples{{{kind}, job=~"$job", rack=~"$rack"}}'),
        product_variable(f'hil_case_samples{{{kind}, board=~"$board"}}'),
        label_variable("bench", f'hil_case_samples{{{kind}, board=~"$board"}}'),
        label_variable("case", f'hil_case_samples{{{kind}, bench=~"$bench"}}'),
        label_variable(
            "figure",
            f'{{__name__=~"hil_.+_seconds", stat=~"p50|p95|p99", bench=~"$bench", {kind}}}',
            regex="/^(?!.*_limit_)(.*)_seconds$/",
            one=True,
        ),
    ]
    about = (
        f"**$figure** of the chosen boards and cases; dashed lines are limits. {REMARK} A figure stands "
        "until the next run of its job, so lines are steps. For single runs see the report's trend page."
    )
    rows = [[text_panel(about)], *([_course(stat)] for stat in ("p50", "p95", "p99")), [_share(), _failed()]]
    description = "Latencies by board and case beside their limits."
    runs = 'job=~"$job", rack=~"$rack", board=~"$board", product=~"$product", kind=~"$kind"'
    return build("hil-latency", "HIL: how has a latency moved?", description, variables, rows, runs=runs)


def _figure(ending: str, stat: str) -> str:
    return f'{{__name__="${{figure}}{ending}", stat=~"{stat}", {_WHERE}}}'


def _course(stat: str) -> Panel:
    limit = f"max by (case, kind, product) ({_figure('_limit_seconds', stat)})"
    return time_panel(
        f"$figure {stat} ($kind)",
        "s",
        f"{stat} as the gate reported it, and the limit in force where there is one.",
        (_figure("_seconds", stat), _SERIES),
        (limit, "limit of {{case}} {{product}} ({{kind}})"),
        width=24,
    )


def _share() -> Panel:
    labels = "job, rack, board, product, kind, target, bench, case, case_hash, stat"
    measured, limit = (
        f"max by ({labels}) ({_figure(ending, 'p50|p95|p99')})" for ending in ("_seconds", "_limit_seconds")
    )
    return table_panel(
        "Share of the limit, highest first ($kind)",
        "percentunit",
        "100 % is the limit itself. The gate judges intervals: a value beyond it may still pass.",
        (f"sort_desc({measured} / {limit})", f"{_SERIES} {{{{stat}}}}"),
        hidden=("case_hash",),
    )


def _failed() -> Panel:
    name = '__name__=~"hil_.+_failed_ratio"'
    return time_panel(
        "Failed ($kind)",
        "percentunit",
        "Share that failed. Where many did, a high percentile is the timeout: read both together.",
        (f"{{{name}, {_WHERE}}}", f"{{{{__name__}}}} {_SERIES}"),
    )

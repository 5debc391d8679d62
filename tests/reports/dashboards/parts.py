# SPDX-License-Identifier: Apache-2.0
"""What the dashboards are built of: queries, panels, variables, and a grid that packs rows of panels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from grafana_foundation_sdk.builders import common as common_builders
from grafana_foundation_sdk.builders import dashboard as builders
from grafana_foundation_sdk.builders import prometheus, stat, statetimeline, table, text, timeseries
from grafana_foundation_sdk.models import common, dashboard
from grafana_foundation_sdk.models.prometheus import PromQueryFormat
from grafana_foundation_sdk.models.text import TextMode

GRID_WIDTH = 24
SOURCE = dashboard.DataSourceRef(type_val="prometheus", uid="${datasource}")
REMARK = (
    "Virtual figures test logic and pipeline; they say nothing about hardware. The variable *kind* begins "
    "with physical boards where there are some, and every legend names the kind."
)


Query = tuple[str, str]  # an expression, and how its series are called


@dataclass(frozen=True)
class Panel:
    """A panel's builder with its width and height in cells of the grid."""

    builder: Any
    width: int
    height: int = 8


def stat_panel(
    title: str, unit: str, help_text: str, *queries: Query, width: int, bad_from: float | None = None
) -> Panel:
    """Return large numbers, one a series; red from ``bad_from`` on."""
    reduce = common_builders.ReduceDataOptions().calcs(["lastNotNull"]).fields("").values(False)
    panel = _common(stat.Panel(), title, unit, queries, help_text)
    panel.reduce_options(reduce).text_mode(common.BigValueTextMode.VALUE_AND_NAME)
    steps = [dashboard.Threshold(None, "green")]
    steps += [] if bad_from is None else [dashboard.Threshold(bad_from, "red")]
    steady = builders.ThresholdsConfig().mode(dashboard.ThresholdsMode.ABSOLUTE).steps(steps)
    panel.graph_mode(common.BigValueGraphMode.NONE).thresholds(steady)
    panel.color_mode(common.BigValueColorMode.NONE if bad_from is None else common.BigValueColorMode.VALUE)
    return Panel(panel, width, 5)


def time_panel(title: str, unit: str, help_text: str, *queries: Query, width: int = 12) -> Panel:
    """Return lines over time; a series whose legend begins with "limit" is dashed.

    Lines are steps, for a figure stands until the next run.
    """
    panel = _common(timeseries.Panel(), title, unit, queries, help_text)
    panel.line_interpolation(common.LineInterpolation.STEP_AFTER).line_width(2).fill_opacity(0)
    panel.show_points(common.VisibilityMode.NEVER)
    legend = common_builders.VizLegendOptions().display_mode(common.LegendDisplayMode.TABLE)
    panel.legend(legend.placement(common.LegendPlacement.BOTTOM).show_legend(True).calcs(["lastNotNull"]))
    dashed = {"fill": "dash", "dash": [10, 10]}
    panel.override_by_regexp("/^limit/", [dashboard.DynamicConfigValue("custom.lineStyle", dashed)])
    return Panel(panel, width)


def state_panel(title: str, help_text: str, query: Query, states: dict[str, tuple[str, str]]) -> Panel:
    """Return a band a series whose values have names and colours: value → (name, colour)."""
    panel = _common(statetimeline.Panel(), title, "none", [query], help_text)
    results = {
        value: dashboard.ValueMappingResult(text=name, color=colour, index=number)
        for number, (value, (name, colour)) in enumerate(states.items())
    }
    panel.mappings([dashboard.ValueMap(options=results)]).merge_values(True)
    return Panel(panel, 12)


def table_panel(title: str, unit: str, help_text: str, query: Query, *, hidden: Sequence[str] = ()) -> Panel:
    """Return a table of the series there are now, a column a label; ``hidden`` labels are left out.

    A label ``url`` is a column of links to what tells more.
    """
    panel = _common(table.Panel(), title, unit, [query], help_text, now=True)
    leave_out = dict.fromkeys(("Time", "__name__", "instance", *hidden), True)
    panel.with_transformation(
        dashboard.DataTransformerConfig(id_val="organize", options={"excludeByName": leave_out})
    )
    link = {"title": "Open it", "url": "${__value.raw}", "targetBlank": True}
    values = {"links": [link], "displayName": "report"}
    panel.override_by_name("url", [dashboard.DynamicConfigValue(key, value) for key, value in values.items()])
    return Panel(panel.no_value("none"), 12)


def text_panel(content: str) -> Panel:
    """Return words over the whole width."""
    panel = text.Panel().title("").transparent(True).mode(TextMode.MARKDOWN).content(content)
    return Panel(panel, GRID_WIDTH, 3)


def build(
    uid: str,
    title: str,
    description: str,
    variables: Sequence[Any],
    rows: Sequence[Sequence[Panel]],
    *,
    runs: str,
) -> dashboard.Dashboard:
    """Return a dashboard; each row of panels begins below the highest of the row before it.

    ``runs`` are label matchers: the commits of these runs are marked in all panels over time.
    """
    builder = builders.Dashboard(title).uid(uid).description(description).tags(["hil"]).editable()
    builder.time("now-30d", "now").refresh("5m").timezone("browser")
    builder.tooltip(dashboard.DashboardCursorSync.CROSSHAIR)
    builder.link(
        builders.DashboardLink("HIL")
        .type(dashboard.DashboardLinkType.DASHBOARDS)
        .tags(["hil"])
        .keep_time(True)
    )
    for variable in variables:
        builder.with_variable(variable)
    made: dashboard.Dashboard = builder.build()
    made.panels = _placed(rows)
    commits: Any = _Commits(runs)
    made.annotations = dashboard.AnnotationContainer(list_val=[commits])
    return made


@dataclass(frozen=True)
class _Commits:
    """A mark where a run of ``runs`` began, with its commit and the way to its report.

    The SDK's own query lacks what Prometheus' has: the value as the time (milliseconds), title and text.
    """

    runs: str

    def to_json(self) -> dict[str, object]:
        found = (
            f"max by (job, rack, kind, commit, title, url) (hil_run_timestamp_seconds{{{self.runs}}} "
            "* on (job, rack, board, product) group_left (commit, title, url) hil_run_info)"
        )
        named = f'label_replace(1000 * {found}, "commit", "$1", "commit", "(.{{12}}).*")'
        return {
            "name": "Commits",
            "datasource": SOURCE,
            "enable": True,
            "iconColor": "blue",
            "expr": named,
            "step": "15m",
            "titleFormat": "{{commit}}",
            "textFormat": '{{title}}<br><a href="{{url}}">report</a>',
            "tagKeys": "job,rack,kind",
            "useValueForTime": True,
        }


# of a rack, as it is now and over a window that ends with its latest run
NOW = 'rack=~"$rack", kind=~"$kind"'
WINDOW = f'{NOW}, days="$days"'
RACK = "{{rack}} ({{kind}})"
BOARD = "{{rack}}/{{board}} ({{kind}})"
WINDOW_WORDS = (
    "The window of **$days days** ends with the rack's latest run. docs/operate/metrics.md says how each "
    "figure is reckoned; `hil rack health` shows the same on a terminal."
)


def rack_variables() -> list[Any]:
    """Return the choices of a dashboard on racks."""
    return [
        datasource_variable(),
        kind_variable("hil_rack_runs"),
        label_variable("rack", 'hil_rack_runs{kind=~"$kind"}'),
        label_variable("days", 'hil_rack_runs{kind=~"$kind"}', one=True),
    ]


def datasource_variable() -> Any:
    return builders.DatasourceVariable("datasource").label("Prometheus").type("prometheus")


def kind_variable(metric: str) -> Any:
    """Return the choice among the kinds that ``metric`` has: physical first, then emulated, then virtual.

    Grafana takes the first where nobody has chosen, and keeps Prometheus' order.
    """
    ranks = {"physical": 3, "emulated": 2, "virtual": 1}
    groups = (f'{rank} * group by (kind) ({metric}{{kind="{kind}"}})' for kind, rank in ranks.items())
    variable = builders.QueryVariable("kind").label("Kind").datasource(SOURCE)
    variable.query({"query": f"query_result(sort_desc({' or '.join(groups)}))", "refId": "variable-kind"})
    variable.refresh(dashboard.VariableRefresh.ON_TIME_RANGE_CHANGED).sort(dashboard.VariableSort.DISABLED)
    return variable.regex('/kind="([^"]+)"/').multi(True)


def label_variable(
    name: str, selector: str, *, regex: str = "", one: bool = False, everything_is: str = ".+"
) -> Any:
    """Return a choice among a label's values; all of them at first, or the first where only ``one`` goes."""
    label = "__name__" if regex else name
    variable = builders.QueryVariable(name).label(name.capitalize()).datasource(SOURCE)
    variable.query({"query": f"label_values({selector}, {label})", "refId": f"variable-{name}"})
    variable.refresh(dashboard.VariableRefresh.ON_TIME_RANGE_CHANGED)
    variable.sort(dashboard.VariableSort.ALPHABETICAL_ASC)
    if regex:
        variable.regex(regex)
    if one:
        return variable.multi(False)
    everything = dashboard.VariableOption(selected=True, text=["All"], value=["$__all"])
    return variable.multi(True).include_all(True).all_value(everything_is).current(everything)


def product_variable(selector: str) -> Any:
    """Return the choice of products; all of them are also figures of none that is named."""
    return label_variable("product", selector, everything_is=".*")


def _common(
    panel: Any, title: str, unit: str, queries: Sequence[Query], help_text: str, *, now: bool = False
) -> Any:
    panel.title(title).description(help_text).datasource(SOURCE).unit(unit)
    targets = []
    for ref_id, (expression, legend) in zip("ABC", queries, strict=False):
        target = prometheus.Dataquery().expr(expression).legend_format(legend).ref_id(ref_id)
        target.datasource(SOURCE)
        targets.append(target.format(PromQueryFormat.TABLE).instant() if now else target.range())
    return panel.targets(targets)


def _placed(rows: Sequence[Sequence[Panel]]) -> list[Any]:
    placed: list[Any] = []
    top = 0
    for row in rows:
        left = 0
        for panel in row:
            made = panel.builder.build()
            made.grid_pos = dashboard.GridPos(h=panel.height, w=panel.width, x=left, y=top)
            made.id_val = len(placed) + 1
            placed.append(made)
            left += panel.width
        top += max(panel.height for panel in row)
    return placed

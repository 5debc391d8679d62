# SPDX-License-Identifier: Apache-2.0
"""The Grafana dashboards: what is committed is what the code makes, and every question has an answer."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from hil.model import SeriesVerdict, Verdict
from hil.reports.pushgateway import push_run
from hil.store import read_judged_run
from tests.reports.dashboards.files import FOLDER, rendered
from tests.reports.dashboards.parts import GRID_WIDTH
from tests.reports.metrics_rig import BOARDS, TIMEOUT_S, compared, healthy, slow, store, store_health
from tests.reports.prometheus_rig import Prometheus, run_prometheus, run_pushgateway

pytestmark = pytest.mark.slow

RULES = FOLDER.parent / "rules.yaml"
NAMES = ("latency.json", "overview.json", "racks.json")
CHOICES = {"kind": "virtual", "figure": "hil_publish_latency", "days": "30", "product": ".*"}
ALL = ".+"  # what a variable stands for where everything is chosen

Json = dict[str, Any]


def read(name: str) -> Json:
    found: Json = json.loads((FOLDER / name).read_text(encoding="utf-8"))
    return found


def targets() -> Iterator[tuple[str, str, Json]]:
    for name in NAMES:
        for panel in read(name)["panels"]:
            for target in panel.get("targets", []):
                yield name, panel["title"], target


def substituted(text: str) -> str:
    """Return an expression as Grafana sends it, for the choices above and everything else chosen."""
    return re.sub(r"\$\{?(\w+)\}?", lambda found: CHOICES.get(found[1], ALL), text)


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    """A Prometheus with the rules that scraped a nightly run, a comparison, and two racks' health."""
    folder = tmp_path_factory.mktemp("servers")
    (folder / "data").mkdir()
    with run_pushgateway(folder) as gateway, run_prometheus(folder, gateway, rules=RULES) as scraper:
        out = folder / "out"
        store_health(out, "fleet")
        runs = [
            store(out, slow_with_all_limits(), rack="fleet", run_id="run-slow", trigger="nightly"),
            store(out, healthy(), rack="fleet", run_id="run-node", trigger="nightly", product="sensor-node"),
            store(out, compared(), rack="fleet", run_id="run-pr", trigger="pr"),
            store(out, healthy(), rack="other", run_id="run-sound"),
        ]
        for run in runs:
            assert push_run(gateway.url, read_judged_run(run), timeout_s=TIMEOUT_S) is None
        scraper.await_samples("rack:hil_rack_board_quarantined:sum")  # scraped, and the last rule evaluated
        scraper.await_samples("job_rack_target:hil_comparisons_regressed:count > 0")
        yield scraper


def slow_with_all_limits() -> Verdict:
    """A run that breaks a limit; what a thresholds file gives no limit gets one of a second."""

    def limited(item: SeriesVerdict) -> SeriesVerdict:
        return item if item.limit is not None or item.unit != "us" else replace(item, limit=1e6)

    return replace(slow(), series=tuple(map(limited, slow().series)))


def test_the_committed_dashboards_are_those_of_the_code() -> None:
    """Each file is byte for byte what python -m tests.reports.dashboards writes, and there is no other."""
    assert {path.name for path in FOLDER.iterdir()} == set(NAMES)
    for name, text in rendered().items():
        assert (FOLDER / name).read_text(encoding="utf-8") == text, "run python -m tests.reports.dashboards"


@pytest.mark.parametrize("name", NAMES)
def test_panels_have_their_own_ids_and_places(name: str) -> None:
    """No two panels share an id or a cell of the grid, and none is wider than the page."""
    panels = read(name)["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    taken: set[tuple[int, int]] = set()
    for place in (panel["gridPos"] for panel in panels):
        assert place["x"] + place["w"] <= GRID_WIDTH
        columns = range(place["x"], place["x"] + place["w"])
        cells = set(itertools.product(columns, range(place["y"], place["y"] + place["h"])))
        assert not cells & taken
        taken |= cells


@pytest.mark.parametrize("name", NAMES)
def test_panels_say_what_they_show(name: str) -> None:
    """Every panel with figures has a title, an explanation, a unit, and a legend that names the kind."""
    shown = [panel for panel in read(name)["panels"] if panel["type"] != "text"]
    for panel in shown:
        assert panel["title"]
        assert panel["description"].endswith(".")
        assert panel["fieldConfig"]["defaults"]["unit"]
        assert panel["datasource"]["uid"] == "${datasource}"
        assert panel["targets"]
        for target in panel["targets"]:
            assert "{{kind}}" in target["legendFormat"], panel["title"]
            assert 'kind=~"$kind"' in target["expr"], panel["title"]
            assert target["datasource"]["uid"] == "${datasource}"
    assert len({panel["title"] for panel in shown if panel["type"] != "stat"}) == sum(
        panel["type"] != "stat" for panel in shown
    )


@pytest.mark.parametrize("name", NAMES)
def test_virtual_figures_are_shown_only_when_they_are_asked_for(name: str) -> None:
    """The kind is physical until somebody chooses otherwise, and words on the page say what virtual is."""
    dashboard = read(name)
    variables = {item["name"]: item for item in dashboard["templating"]["list"]}
    assert variables["kind"]["current"]["value"] == ["physical"]
    assert variables["kind"]["query"] == "physical,emulated,virtual"
    assert variables["datasource"]["type"] == "datasource"
    (words,) = (panel for panel in dashboard["panels"] if panel["type"] == "text")
    assert "Virtual figures test logic and pipeline" in words["options"]["content"]


def test_variables_are_there_before_they_are_used() -> None:
    """What a panel names is a variable of its dashboard; what a variable's query names stands above it."""
    for name in NAMES:
        known: set[str] = set()
        dashboard = read(name)
        for variable in dashboard["templating"]["list"]:
            asked = variable["query"]["query"] if variable["type"] == "query" else ""
            assert set(re.findall(r"\$\{?(\w+)", asked)) <= known
            known.add(variable["name"])
        used = set(re.findall(r"\$\{?(\w+)", json.dumps(dashboard["panels"])))
        assert used <= known
        assert known <= used | {"job"}, "a variable that changes nothing"


@pytest.mark.parametrize(
    ("name", "title", "target"),
    [pytest.param(*item, id=f"{item[0]} {item[1]} {item[2]['refId']}") for item in targets()],
)
def test_every_expression_has_an_answer(prometheus: Prometheus, name: str, title: str, target: Json) -> None:
    """Prometheus knows the expression and finds at least one sample of what real runs pushed."""
    expression = substituted(target["expr"])
    assert prometheus.query(expression), f"{name}, {title}: {expression}"


def test_every_variable_has_something_to_choose(prometheus: Prometheus) -> None:
    """label_values() of each variable finds what the runs pushed; the regular expression leaves the stem."""
    chosen: dict[tuple[str, str], set[str]] = {}
    for name in NAMES:
        for variable in read(name)["templating"]["list"]:
            if variable["type"] != "query":
                continue
            match = re.fullmatch(r"label_values\((.+), (\w+)\)", variable["query"]["query"])
            assert match
            values = set(prometheus.label_values(match[2], substituted(match[1])))
            assert values, variable["name"]
            if pattern := variable.get("regex"):
                values = {found[1] for value in values if (found := re.search(pattern.strip("/"), value))}
            chosen[name, variable["name"]] = values
    assert "hil_publish_latency" in chosen["latency.json", "figure"]
    assert not any("_limit" in value for value in chosen["latency.json", "figure"])
    assert chosen["racks.json", "days"] == {"30"}
    assert set(BOARDS) <= chosen["latency.json", "board"]
    assert chosen["overview.json", "product"] == {"sensor-node"}


def test_products_of_one_board_stay_apart(prometheus: Prometheus) -> None:
    """A nightly run of another product on the same boards replaces nothing: both count, each for itself."""
    where = f'job="hil_nightly", rack="fleet", board="{BOARDS[1]}"'
    broken = {
        labels.get("product", ""): value
        for labels, value in prometheus.query(f"job_rack_board:hil_limits_broken:count{{{where}}}")
    }
    assert broken.keys() == {"", "sensor-node"}
    assert broken[""] > broken["sensor-node"] == 0
    joined = f"hil_case_samples{{{where}}} * on (job, rack, board, product) group_left (run_id) hil_run_info"
    assert {labels["run_id"] for labels, _ in prometheus.query(joined)} == {"run-slow", "run-node"}


def test_the_legend_names_only_labels_that_are_there(prometheus: Prometheus) -> None:
    """A legend of a label that the expression has lost would show an empty place."""
    for name, title, target in targets():
        wanted = set(re.findall(r"{{(\w+)}}", target["legendFormat"]))
        for labels, _ in prometheus.query(substituted(target["expr"])):
            wanted.discard("product")  # of which there is none where nobody named one
            assert wanted <= labels.keys(), f"{name}, {title}: {wanted - labels.keys()} is not in {labels}"

# SPDX-License-Identifier: Apache-2.0
"""The Grafana dashboards: what is committed is what the code makes, and every question has an answer."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from hil.model import SeriesVerdict, Verdict
from hil.reports.pushgateway import push_run
from hil.store import read_judged_run
from tests.reports.dashboards.files import FOLDER, rendered
from tests.reports.dashboards.parts import GRID_WIDTH, REMARK
from tests.reports.metrics_rig import BOARDS, TIMEOUT_S, compared, healthy, slow, store, store_health
from tests.reports.prometheus_rig import Prometheus, run_prometheus, run_pushgateway

RULES = FOLDER.parent / "rules.yaml"
NAMES = ("latency.json", "overview.json", "racks.json")
RANKED = ("physical", "emulated", "virtual")  # as they are chosen, where nobody has
CHOICES = {"kind": "virtual", "figure": "hil_publish_latency", "days": "30", "product": ".*"}
COMMIT = "618e3a8" + "0" * 33
WHENCE: dict[str, Any] = {
    "git": {"commit": COMMIT, "dirty": False, "title": "Send at once"},
    "ci": {"url": "https://github.com/example/hil/actions/runs/4711", "head_sha": COMMIT},
}
ALL = ".+"  # what a variable stands for where everything is chosen
NODE = "sensor-node"

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
    return re.sub(r"\$\{?([a-z]\w*)\}?", lambda found: CHOICES.get(found[1], ALL), text)


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    """A Prometheus with the rules that scraped a nightly run, a comparison, and two racks' health."""
    folder = tmp_path_factory.mktemp("servers")
    (folder / "data").mkdir()
    with run_pushgateway(folder) as gateway, run_prometheus(folder, gateway, rules=RULES) as scraper:
        out = folder / "out"
        store_health(out, "fleet")
        runs = [
            store(out, slow_with_all_limits(), rack="fleet", run_id="run-slow", trigger="nightly", **WHENCE),
            store(out, healthy(), rack="fleet", run_id="run-node", trigger="nightly", product=NODE, **WHENCE),
            store(out, compared(), rack="fleet", run_id="run-pr", trigger="pr", **WHENCE),
            store(out, healthy(), rack="other", run_id="run-sound", **WHENCE),
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
def test_panels_say_what_they_show(name: str) -> None:
    """Every panel with figures has a title, an explanation, a unit, and a legend that names the kind. No two
    share an id or a cell of the grid, and none is wider than the page. The dashboard's title is a question
    that no other asks, and words on the page say what virtual is."""
    dashboard = read(name)
    assert re.fullmatch(r"HIL: [a-z ]+\?", dashboard["title"])
    assert len({read(other)["title"] for other in NAMES}) == len(NAMES)
    panels = dashboard["panels"]
    (words,) = (panel for panel in panels if panel["type"] == "text")
    assert REMARK in words["options"]["content"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    taken: set[tuple[int, int]] = set()
    for place in (panel["gridPos"] for panel in panels):
        assert place["x"] + place["w"] <= GRID_WIDTH
        columns = range(place["x"], place["x"] + place["w"])
        cells = set(itertools.product(columns, range(place["y"], place["y"] + place["h"])))
        assert not cells & taken
        taken |= cells
    shown = [panel for panel in panels if panel["type"] != "text"]
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


def kinds_offered(prometheus: Prometheus, name: str) -> list[str]:
    """Return the kinds in the order in which Grafana offers them: it keeps that of the answer."""
    (kind,) = (item for item in read(name)["templating"]["list"] if item["name"] == "kind")
    assert (kind["sort"], kind.get("current", {})) == (0, {}), "Grafana takes the first"
    query = re.fullmatch(r"query_result\((.+)\)", kind["query"]["query"])
    assert query
    pattern = kind["regex"].strip("/")
    answers = [f'{{kind="{labels["kind"]}"}} {value} 0' for labels, value in prometheus.query(query[1])]
    return [found[1] for answer in answers if (found := re.search(pattern, answer))]


@pytest.mark.slow
def test_a_kind_that_has_figures_is_chosen(prometheus: Prometheus) -> None:
    """Where all that was pushed is virtual, that is what opens; the dashboard is not empty."""
    assert [kinds_offered(prometheus, name) for name in NAMES] == [["virtual"]] * len(NAMES)


@pytest.mark.slow
def test_physical_figures_come_first(tmp_path: Path) -> None:
    """Where several kinds were pushed, physical ones open, then emulated ones."""
    (tmp_path / "data").mkdir()
    with run_pushgateway(tmp_path) as gateway, run_prometheus(tmp_path, gateway, rules=RULES) as scraper:
        for kind in sorted(RANKED):
            gateway.put(f"/metrics/job/hil_nightly/board/{kind}", f'hil_run_info{{kind="{kind}"}} 1\n')
        for kind in RANKED:
            scraper.await_samples(f'hil_run_info{{kind="{kind}"}}')
        assert kinds_offered(scraper, "overview.json") == list(RANKED)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_commits_are_marked_where_their_runs_began(prometheus: Prometheus, name: str) -> None:
    """One mark a run: its time in milliseconds, the short commit, its title, and an address to follow."""
    (marks,) = read(name)["annotations"]["list"]
    assert (marks["enable"], marks["useValueForTime"]) == (True, True)
    found = prometheus.query(substituted(marks["expr"]))
    assert found
    for labels, value in found:
        assert labels["commit"] == COMMIT[:12]
        assert datetime.fromtimestamp(value / 1000, UTC).year == 2026
        named = set(re.findall(r"{{(\w+)}}", marks["titleFormat"] + marks["textFormat"]))
        assert named <= labels.keys()
        assert labels["url"].startswith("https://")


def test_variables_are_there_before_they_are_used() -> None:
    """What a panel names is a variable of its dashboard; what a variable's query names stands above it."""
    for name in NAMES:
        known: set[str] = set()
        dashboard = read(name)
        for variable in dashboard["templating"]["list"]:
            asked = variable["query"]["query"] if variable["type"] == "query" else ""
            assert set(re.findall(r"\$\{?(\w+)", asked)) <= known
            known.add(variable["name"])
        shown = json.dumps([dashboard["panels"], dashboard["annotations"]])
        used = set(re.findall(r"\$\{?([a-z]\w*)", shown))  # __value is Grafana's own
        assert used <= known
        assert known <= used | {"job"}, "a variable that changes nothing"


@pytest.mark.slow
def test_every_expression_has_an_answer(prometheus: Prometheus) -> None:
    """Prometheus knows each expression and finds at least one sample of what real runs pushed; a legend names
    only labels that are there: of one that the expression has lost it would show an empty place.
    """
    for name, title, target in targets():
        expression = substituted(target["expr"])
        answers = prometheus.query(expression)
        assert answers, f"{name}, {title}: {expression}"
        # of a product there is none where nobody named one
        wanted = set(re.findall(r"{{(\w+)}}", target["legendFormat"])) - {"product"}
        for labels, _ in answers:
            assert wanted <= labels.keys(), f"{name}, {title}: {wanted - labels.keys()} is not in {labels}"


@pytest.mark.slow
def test_every_variable_has_something_to_choose(prometheus: Prometheus) -> None:
    """label_values() of each variable finds what the runs pushed; the regular expression leaves the stem."""
    chosen: dict[tuple[str, str], set[str]] = {}
    for name in NAMES:
        for variable in read(name)["templating"]["list"]:
            if variable["type"] != "query" or variable["name"] == "kind":  # for which is a test of its own
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
    assert chosen["overview.json", "product"] == {NODE}


@pytest.mark.slow
def test_products_of_one_board_stay_apart(prometheus: Prometheus) -> None:
    """A nightly run of another product on the same boards replaces nothing: both count, each for itself."""
    where = f'job="hil_nightly", rack="fleet", board="{BOARDS[1]}"'
    broken = {
        labels.get("product", ""): value
        for labels, value in prometheus.query(f"job_rack_board:hil_limits_broken:count{{{where}}}")
    }
    assert broken.keys() == {"", NODE}
    assert broken[""] > broken[NODE] == 0
    joined = f"hil_case_samples{{{where}}} * on (job, rack, board, product) group_left (run_id) hil_run_info"
    assert {labels["run_id"] for labels, _ in prometheus.query(joined)} == {"run-slow", "run-node"}

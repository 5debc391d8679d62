# SPDX-License-Identifier: Apache-2.0
"""Several products on one rack: their figures stay apart, and none is compared with another's."""

from __future__ import annotations

import dataclasses
import datetime
import json
import math
from pathlib import Path

import numpy as np
import pytest

from hil.base.errors import ConfigError
from hil.base.paths import PROJECT_ROOT
from hil.cli.app import run_command
from hil.gate import judge
from hil.history import keep, load
from hil.history.files import path_of, read_summary
from hil.history.from_run import add_run
from hil.history.nightly.events import events_of
from hil.history.nightly.survey import survey
from hil.history.summary import to_bytes
from hil.model import RunRecord, format_series_id
from hil.store import read_run
from hil.store.entries import entry_from_json
from hil.thresholds import load_all
from hil.thresholds.limits import Limit, Since, Where
from tests.gate.compare_records import run as compared_run
from tests.gate.compare_records import thresholds as compared_thresholds
from tests.history.events_rig import Effect, Rack, planted
from tests.history.history_files import night, values_in
from tests.history.saved import save
from tests.history.test_history_store_runs import four_boots, leave_run
from tests.history.test_nightly_events import CALM
from tests.make_records import publish_record, publish_thresholds

BENCHES = load_all(PROJECT_ROOT / "thresholds")
NODE = "sensor-node"
DAY = datetime.date(2026, 1, 1)


def of(product: str, record: RunRecord) -> RunRecord:
    return dataclasses.replace(record, product=product)


def since(number: int, size: float) -> Effect:
    return lambda n, _board, _metric: math.log1p(size) if n >= number else 0.0


def test_a_record_without_product_is_written_as_before() -> None:
    """The key is there where a product is named, comes back as it was, and holds no other name."""
    record = publish_record(rows=1)
    assert "product" not in record.to_json()
    written = json.loads(json.dumps(of(NODE, record).to_json()))
    assert entry_from_json(written) == of(NODE, record)
    for name in ("Sensor", "a/b", "a:b", "x" * 33):
        with pytest.raises(ValueError, match="product is"):
            entry_from_json({**written, "product": name})


def test_a_series_is_of_its_product() -> None:
    """The verdict's names begin with it; limits may be for one, and hold for no other."""
    limit = Limit(
        Where({"metric": "publish_latency_p95_us", "product": NODE}),
        "max", 1000.0, "for the test", Since(DAY), None, "x:1",
    )  # fmt: skip
    own = dataclasses.replace(publish_thresholds(), limits=(limit,))
    outcomes = {}
    for product in ("", NODE, "gateway"):
        found = judge([of(product, publish_record())], {"publish": own})
        item = next(one for one in found.series if one.metric == "publish_latency_p95_us")
        assert item.series_id == format_series_id("virtual", "virtual-1", item.case_id, item.metric, product)
        outcomes[product] = item.outcome
    assert outcomes == {"": "no-baseline", NODE: "regressed", "gateway": "no-baseline"}


def test_a_journal_of_two_products_is_not_judged() -> None:
    """The base of a run is of its own product: the sentence names both, and what to do."""
    entries = compared_run()
    mixed = [
        of("gateway", entry) if isinstance(entry, RunRecord) and entry.role == "base" else entry
        for entry in entries
    ]
    with pytest.raises(ConfigError, match="no product by name and product gateway"):
        judge(mixed, {"publish": compared_thresholds()})


def test_a_run_enters_with_its_product(tmp_path: Path) -> None:
    """It stands in the file and in each series' name; what run.json and records dispute does not enter."""
    records = [of(NODE, record) for record in four_boots()]
    added = add_run(read_run(leave_run(tmp_path / "out", records, product=NODE)), tmp_path / "h")
    assert json.loads(added.path.read_text())["product"] == NODE
    assert all(name.startswith("sensor-node:virtual/") for name, _ in load(tmp_path / "h").entries)
    with pytest.raises(ConfigError, match=r"to virtual: .*, its records to sensor-node, virtual: "):
        add_run(read_run(leave_run(tmp_path / "other", records)), tmp_path / "h")


def test_boot_values_of_two_products_on_one_board_are_two_series(tmp_path: Path) -> None:
    """Same rack, board, case and metric: one file a run, and a series each, with its own values alone."""
    both = night(0), night(1, product=NODE)
    for run in both:
        keep(tmp_path, run)
    history = load(tmp_path)
    names = {name for name, role in history.entries if role == "candidate"}
    plain = {name for name in names if name.startswith("bench-1/")}
    assert names == plain | {f"{NODE}:{name}" for name in plain}
    assert history.products == ("", NODE)
    for name, session in ((min(plain), 0), (f"{NODE}:{min(plain)}", 1)):
        found = history.series(name)
        assert found is not None
        assert set(found.session.tolist()) == {session}
        assert np.isin(found.value, values_in(both[session]).values).all()


def test_a_file_has_a_product_where_there_is_one(tmp_path: Path) -> None:
    """The key is written where there is a name, and no other word may be in it."""
    assert b"product" not in to_bytes(night(0))
    one = night(0, product=NODE)
    keep(tmp_path, one)
    path = path_of(tmp_path, one)
    assert read_summary(path) == one
    for name in ('"A"', "1", '"a:b"'):
        path.write_bytes(to_bytes(one).replace(b'"product":"sensor-node"', f'"product":{name}'.encode()))
        with pytest.raises(ConfigError, match="product is "):
            read_summary(path)


def test_sessions_and_csv_say_whose_they_are(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`hil history show` and `export` name the product where a history has one."""
    for run in (night(0), night(1, product=NODE)):
        keep(tmp_path, run)
    assert run_command(["history", "show", "--history", str(tmp_path)]) == 0
    assert "\nsensor-node:bench-1  " in capsys.readouterr().out
    assert run_command(["history", "export", "--history", str(tmp_path)]) == 0
    ends = {line.rpartition(",")[2] for line in capsys.readouterr().out.splitlines()}
    assert ends == {"product", "", NODE}


def test_a_commit_is_one_products_and_the_access_point_is_everybodys() -> None:
    """Two products on the same boards: the firmware's step names its product and holds its series alone; what
    happened to the rack is one event of both.
    """
    moved = since(40, 0.2)
    history = planted(
        Rack(firmware=since(20, 0.15), environment=moved, product=NODE),
        Rack(environment=moved, product="gateway"),
        air=CALM,
    )
    found = survey(history, BENCHES)
    firmware, environment = events_of(found, thresholds=BENCHES)
    assert (firmware.cause, firmware.products) == ("firmware", (NODE,))
    assert firmware.headline.startswith("Firmware of sensor-node: ")
    assert "on sensor-node:lab/e" in firmware.sentence
    assert len(firmware.findings) == 24
    assert (environment.cause, environment.products) == ("environment", ("gateway", NODE))
    assert len(environment.findings) == 48
    alone = survey(history, BENCHES, products=["gateway"])
    assert {finding.name.product for finding in alone.findings} == {"gateway"}


def test_one_product_alone_is_told_as_before() -> None:
    """Words name no product where all there is are its own figures."""
    effect = since(20, 0.15)
    told = [
        events_of(survey(planted(Rack(firmware=effect, product=name), air=CALM), BENCHES), thresholds=BENCHES)
        for name in ("", "gateway")
    ]
    plain, named = ([event.headline.split(" since")[0] for event in events] for events in told)
    assert plain == named
    assert not any("gateway" in f"{event.headline} {event.sentence}" for event in told[1])


def test_changes_may_be_asked_of_one_product(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`hil changes --product NAME`; one that the history does not hold is named, with those that it does."""
    save(planted(Rack(boards=("e1",), product=NODE), Rack(boards=("e1",)), nights=6), tmp_path)
    assert run_command(["changes", "--history", str(tmp_path), "--product", NODE]) == 0
    assert capsys.readouterr().out.startswith("6 series")
    assert run_command(["changes", "--history", str(tmp_path), "--product", "sensor-nod"]) == 2
    assert "'sensor-node'?" in capsys.readouterr().err

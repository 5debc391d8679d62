# SPDX-License-Identifier: Apache-2.0
"""``hil metrics``: a stored run pushed again, and a retired board's groups taken away."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from prometheus_client.exposition import push_to_gateway

from hil.base.errors import RigError
from hil.cli.app import run_command
from hil.reports import gateway_groups
from hil.reports.gateway_groups import delete_groups, held_groups
from hil.reports.metrics import Families
from tests.lab import ROOT
from tests.reports.metrics_rig import BOARDS, TIMEOUT_S, healthy, slow, store, store_health
from tests.reports.prometheus_rig import Pushgateway, run_pushgateway

Captured = pytest.CaptureFixture[str]


def main(arguments: list[str]) -> int:
    return run_command(["metrics", *arguments])


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pushgateway]:
    with run_pushgateway(tmp_path_factory.mktemp("gateway")) as pushgateway:
        yield pushgateway


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """No credentials and no proxy but those of the test."""
    for name in [name for name in os.environ if name.startswith("HIL_PUSHGATEWAY")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("no_proxy", "127.0.0.1")


def pushed(folder: Path, gateway: Pushgateway, rack: str, *triggers: str) -> Path:
    """Push a run of each trigger; return the last one's folder."""
    run = folder
    for trigger in triggers:
        run = store(folder, healthy(), rack=rack, run_id=f"{rack}-{trigger}", trigger=trigger)
        assert main(["push", "--pushgateway", gateway.url, str(run)]) == 0
    return run


@pytest.mark.slow
def test_a_retired_board_is_gone_from_every_job(
    tmp_path: Path, gateway: Pushgateway, capsys: Captured
) -> None:
    """All its groups are deleted and named; its neighbour and a board of that name elsewhere stay."""
    for rack in ("lab", "elsewhere"):
        pushed(tmp_path / rack, gateway, rack, "nightly", "pr", "local")
    capsys.readouterr()
    assert main(["retire", "--rack", "lab", "--pushgateway", gateway.url, BOARDS[0]]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.partition(":")[0] for line in lines] == [
        f"deleted {job} of lab/{BOARDS[0]}" for job in ("hil_local", "hil_nightly", "hil_pr")
    ]
    assert lines[1].endswith("run lab-nightly")
    assert not gateway.samples(rack="lab", board=BOARDS[0])
    for rack, board in (("lab", BOARDS[1]), ("elsewhere", BOARDS[0])):
        assert len(gateway.samples(rack=rack, board=board)["hil_run_info"]) == 3


ODD_NAMES = ("a b", "a/b", 'a"b', "a+b", "a%2Fb", "a\nb", "a\\b", "böard", "?x#y", "a;b")


@pytest.mark.slow
def test_a_board_of_any_name_can_be_retired(gateway: Pushgateway) -> None:
    """Blanks, slashes, quotes, line ends: the name arrives as it is, and exactly that group goes again."""
    for name in ODD_NAMES:
        families = Families({"kind": "virtual", "target": name})
        families.add("hil_board_up", "Whether.", 1, case=name)
        push_to_gateway(gateway.url, "hil_odd", families, grouping_key={"rack": "odd", "board": name})
    left = set(ODD_NAMES)
    for name in ODD_NAMES:
        held = [one for one in held_groups(gateway.url, timeout_s=TIMEOUT_S) if one.job == "hil_odd"]
        assert sorted(one.board for one in held) == sorted(left)
        (sample,) = gateway.samples(board=name)["hil_board_up"]
        assert (sample[0]["case"], sample[0]["target"]) == (name, name)
        delete_groups(gateway.url, [one for one in held if one.board == name], timeout_s=TIMEOUT_S)
        left.remove(name)
    assert not gateway.samples(job="hil_odd")


@pytest.mark.slow
def test_a_dry_run_deletes_nothing(tmp_path: Path, gateway: Pushgateway, capsys: Captured) -> None:
    """It says what would be deleted, and everything is still there."""
    pushed(tmp_path, gateway, "dry", "local")
    capsys.readouterr()
    assert main(["retire", "--rack", "dry", "--pushgateway", gateway.url, "--dry-run", BOARDS[0]]) == 0
    assert capsys.readouterr().out.startswith(f"would delete hil_local of dry/{BOARDS[0]}: pushed 20")
    assert gateway.samples(rack="dry", board=BOARDS[0])["hil_run_info"]


@pytest.mark.slow
def test_an_unknown_board_is_refused_with_those_there_are(
    tmp_path: Path, gateway: Pushgateway, capsys: Captured
) -> None:
    """One wrong name among several: nothing is deleted, and the sentence lists what the gateway knows."""
    pushed(tmp_path, gateway, "typo", "local")
    assert main(["retire", "--rack", "typo", "--pushgateway", gateway.url, BOARDS[0], "virtual-9"]) == 2
    said = capsys.readouterr().err
    assert "holds nothing of typo/virtual-9" in said
    assert f"typo/{BOARDS[0]}, typo/{BOARDS[1]}" in said
    assert gateway.samples(rack="typo", board=BOARDS[0])


@pytest.mark.slow
def test_foreign_groups_are_neither_listed_nor_touched(gateway: Pushgateway) -> None:
    """What other programs push is theirs, also where it has a rack and a board."""
    gateway.put("/metrics/job/backup/rack/foreign/board/x", "size_bytes 1\n")
    gateway.put("/metrics/job/hil_rack/rack/foreign", "hil_rack_odd 1\n")
    assert not [held for held in held_groups(gateway.url, timeout_s=TIMEOUT_S) if held.rack == "foreign"]


@pytest.mark.slow
def test_products_on_one_board_have_groups_of_their_own(
    tmp_path: Path, gateway: Pushgateway, capsys: Captured
) -> None:
    """Neither replaces the other's figures, nor those of no product; each is retired by its name alone."""
    for product in ("", "sensor-node", "gateway"):
        run = store(tmp_path, healthy(), rack="shared", run_id=f"of-{product}", product=product)
        assert main(["push", "--pushgateway", gateway.url, str(run)]) == 0
    held = gateway.samples(rack="shared", board=BOARDS[0])["hil_run_info"]
    assert {(labels.get("product", ""), labels["run_id"]) for labels, _ in held} == {
        ("", "of-"), ("sensor-node", "of-sensor-node"), ("gateway", "of-gateway"),
    }  # fmt: skip
    assert len(gateway.samples(rack="shared", board=BOARDS[0])["hil_publish_latency_seconds"]) >= 3
    capsys.readouterr()
    words = ["retire", "--rack", "shared", "--pushgateway", gateway.url, BOARDS[0]]
    assert main([*words, "--product", "sensor-node"]) == 0
    said = capsys.readouterr().out
    assert said.startswith(f"deleted hil_local of shared/{BOARDS[0]} with sensor-node: pushed 20")
    assert len(said.splitlines()) == 1
    left = gateway.samples(rack="shared", board=BOARDS[0])["hil_run_info"]
    assert {labels["run_id"] for labels, _ in left} == {"of-", "of-gateway"}
    assert main([*words, "--product", "sensor-node"]) == 2
    assert f"holds nothing of shared/{BOARDS[0]} with sensor-node" in capsys.readouterr().err
    assert main(words) == 0
    assert not gateway.samples(rack="shared", board=BOARDS[0])


class KeepsEverything(BaseHTTPRequestHandler):
    """A gateway whose groups are pushed again as soon as they are taken away."""

    def do_DELETE(self) -> None:
        self._answer(202, {})

    def do_GET(self) -> None:
        labels = {"job": "hil_local", "rack": "lab", "board": "x"}
        pushed = {"metrics": [{"labels": labels, "value": "1.7e+09"}]}
        self._answer(200, {"status": "success", "data": [{"labels": labels, "push_time_seconds": pushed}]})

    def log_message(self, *_: object) -> None:
        pass

    def _answer(self, status: int, value: object) -> None:
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@contextmanager
def serving(handler: type[BaseHTTPRequestHandler]) -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()


def test_a_group_that_stays_is_told() -> None:
    """Nobody is told that a group is gone while the gateway holds it: a run may have pushed it again."""
    with serving(KeepsEverything) as url:
        held = held_groups(url, timeout_s=TIMEOUT_S)
        assert [(one.job, one.rack, one.board) for one in held] == [("hil_local", "lab", "x")]
        with pytest.raises(RigError, match=r"still holds hil_local of lab/x"):
            delete_groups(url, held, timeout_s=0.2)


class NoGateway(SimpleHTTPRequestHandler):
    """A web server that has a page for everything."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"<html>")

    def log_message(self, *_: object) -> None:
        pass


def test_what_is_no_gateway_is_told(capsys: Captured) -> None:
    """Another server's page is no list of groups: exit code 3, and where to look."""
    with serving(NoGateway) as url:
        assert main(["retire", "--rack", "lab", "--pushgateway", url, "x"]) == 3
        assert f"what answers at {url} is no Pushgateway" in capsys.readouterr().err


def test_no_more_of_an_answer_is_read_than_a_gateway_gives(
    capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server that sends and sends takes no memory: exit code 3, and how much was too much."""
    monkeypatch.setattr(gateway_groups, "_MOST_BYTES", 3)
    with serving(NoGateway) as url:
        assert main(["retire", "--rack", "lab", "--pushgateway", url, "x"]) == 3
        assert f"{url} cannot be asked: it answers with more than" in capsys.readouterr().err


@pytest.mark.slow
def test_a_stored_run_arrives_later(tmp_path: Path, gateway: Pushgateway, capsys: Captured) -> None:
    """What could not be pushed at the run's end is pushed from its folder, its rack's health with it."""
    store_health(tmp_path, "later")
    run = store(tmp_path, slow(), rack="later")
    assert main(["push", "--pushgateway", gateway.url, str(run)]) == 0
    assert capsys.readouterr().out.splitlines() == [
        f"pushed hil_local of later/{BOARDS[0]}",
        f"pushed hil_local of later/{BOARDS[1]}",
        "pushed hil_rack of rack later",
    ]
    assert gateway.samples(rack="later", board=BOARDS[1])["hil_publish_latency_seconds"]


@pytest.mark.slow
def test_a_run_that_cannot_be_read_is_refused(tmp_path: Path, gateway: Pushgateway, capsys: Captured) -> None:
    """A damaged run.json or a missing verdict: exit code 2 and a sentence, never a traceback."""
    run = store(tmp_path, healthy(), rack="unread")
    for name in ("run.json", "verdicts.json"):
        (run / name).write_bytes(b"\xff{")
        assert main(["push", "--pushgateway", gateway.url, str(run)]) == 2
        assert str(run) in capsys.readouterr().err


@pytest.mark.slow
def test_an_older_run_does_not_replace_a_newer_one(
    tmp_path: Path, gateway: Pushgateway, capsys: Captured
) -> None:
    """It would show old figures under a new date; --force does it all the same."""
    newer = {"rack": "order", "run_id": "newer", "started_utc": "2026-11-21T22:12:57Z"}
    assert main(["push", "--pushgateway", gateway.url, str(store(tmp_path, healthy(), **newer))]) == 0
    older = store(tmp_path, healthy(), rack="order", run_id="older")
    arguments = ["push", "--pushgateway", gateway.url, str(older)]
    assert main(arguments) == 2
    said = capsys.readouterr().err
    assert f"holds a newer run of order/{BOARDS[0]} (hil_local): newer" in said
    assert "--force" in said
    assert gateway.samples(rack="order", board=BOARDS[0])["hil_run_info"][0][0]["run_id"] == "newer"
    assert main([*arguments, "--force"]) == 0
    assert gateway.samples(rack="order", board=BOARDS[0])["hil_run_info"][0][0]["run_id"] == "older"


@pytest.mark.parametrize("command", ["push", "retire"])
def test_a_gateway_that_does_not_answer_is_the_labs_fault(
    tmp_path: Path, command: str, capsys: Captured
) -> None:
    """Nothing listens there: exit code 3, what came back, and the way out."""
    what = ["x", "--rack", "lab"] if command == "retire" else [str(store(tmp_path, healthy(), rack="lab"))]
    assert main([command, *what, "--pushgateway", "http://127.0.0.1:9"]) == 3
    said = capsys.readouterr().err
    assert "cannot be asked: Connection refused. Next: check scheme, host and port" in said


@pytest.mark.slow
def test_the_command_takes_a_rack_file_or_a_name(
    tmp_path: Path, gateway: Pushgateway, capsys: Captured
) -> None:
    """The file gives name and address, and who still lists the board is told; a name needs the address."""
    lines = (ROOT / "hil/racks/virtual.yaml").read_text()
    rack = tmp_path / "rack.yaml"
    rack.write_text(f"{lines}\nmetrics:\n  pushgateway: {gateway.url}\n")
    board = "v1"
    boards = [{"id": board, "kind": "virtual", "target": "virtual-esp32"}]
    run = store(tmp_path / "out", healthy(), rack="virtual", boards=boards)
    assert main(["push", str(run), "--rack", str(rack)]) == 0
    assert capsys.readouterr().err == ""
    assert main(["retire", board, "--rack", str(rack), "--dry-run"]) == 0
    said = capsys.readouterr()
    assert f"still lists {board}" in said.err
    assert f"would delete hil_local of virtual/{board}" in said.out
    assert main(["retire", board, "--rack", "virtual"]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert "no Pushgateway is named" in said.err
    assert main(["retire", board, "--rack", "virtual", "--pushgateway", gateway.url]) == 0
    assert capsys.readouterr().err == ""
    assert not gateway.samples(rack="virtual", board=board)

# SPDX-License-Identifier: Apache-2.0
"""The plan: selections, limits, deadlines."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from hil.base.errors import ConfigError
from hil.boards.rack import Rack, load_rack
from hil.gate.pairs import may_block
from hil.model import KINDS, Case, Scalar
from hil.network.peers.gateway.plan import RequesterPlan
from hil.run.plan import BoardPlan, deadline_s, make_plan
from hil.run.plan.comparing import cases_of, compared
from hil.run.plan.deadline import GATEWAY_READY_S, expected_s
from hil.run.plan.selection import select_cases
from hil.thresholds import load_project

ROOT = Path(__file__).resolve().parents[2]
RACK = load_rack(ROOT / "hil" / "racks" / "virtual.yaml")
SHIPPED = ROOT / "thresholds"


@dataclass(frozen=True)
class Source:
    """A thresholds file with nothing but suites, whose first case has the defaults."""

    suites: Mapping[str, tuple[Case, ...]]
    kinds: Sequence[str] = KINDS

    def case(self, overrides: Mapping[str, Scalar]) -> Case:
        first = next(iter(self.suites.values()))[0]
        return replace(first, parameters={**first.parameters, **overrides})


def publish(qos: int, payload_bytes: int = 64, transport: str = "tcp") -> Case:
    return Case("publish", {"qos": qos, "payload_bytes": payload_bytes, "transport": transport})


SMALL, LARGE, SECURE = publish(1), publish(1, 2048), publish(0, transport="mtls")
JITTER = Case("jitter", {"period_us": 1000})
BENCHES = {
    "publish": Source({"quick": (SMALL,), "nightly": (SMALL, LARGE, SECURE)}),
    "jitter": Source({"nightly": (JITTER,)}),
}


@pytest.mark.parametrize(
    ("selection", "expected"),
    [
        ("quick", {SMALL.case_id}),
        ("nightly and publish", {SMALL.case_id, LARGE.case_id, SECURE.case_id}),
        ("qos=0", {SECURE.case_id}),
        ("publish and payload_bytes>=1024", {LARGE.case_id}),
        ("payload_bytes<1024 and not transport=mtls", {SMALL.case_id}),
        ("jitter or (qos=1 and payload_bytes!=64)", {JITTER.case_id, LARGE.case_id}),
        ("transport!=tcp", {SECURE.case_id}),
        ("publish/defaults", {SMALL.case_id}),
        ("publish/transport=mtls,qos=0", {SECURE.case_id}),
        (LARGE.case_id, {LARGE.case_id}),
        (f"({SMALL.case_id} or jitter/defaults) and not quick", {JITTER.case_id}),
    ],
)
def test_a_selection_is_a_boolean_expression(selection: str, expected: set[str]) -> None:
    """Suites, benches, cases by name and comparisons are joined by and, or, not and brackets."""
    assert {case.case_id for case in select_cases(BENCHES, selection)} == expected


@pytest.mark.parametrize(
    ("selection", "words"),
    [
        ("quik", ["'quik'", "did you mean 'quick'"]),
        ("qso=1", ["'qso'", "did you mean 'qos'"]),
        ("quick and", ["ends too early"]),
        ("(quick", ["bracket"]),
        ("quick publish", ["'publish' was not expected"]),
        ("quick ; ls", ["'; ls'"]),
        ("transport>tls", ["does not compare with a number"]),
        ("qos=2", ["none of the 4 cases", "4 cases but for 'qos=2' (qos is "]),
        ("quick and qos=2", ["1 case but for 'qos=2' (qos is 1)"]),
        ("publsh/qos=1", ["unknown bench 'publsh'", "did you mean 'publish'"]),
        ("publish/qos=7", ["matches none of the 4 cases"]),
        ("", ["ends too early"]),
    ],
)
def test_a_wrong_selection_says_what_is_wrong(selection: str, words: list[str]) -> None:
    """A selection that cannot be read, or selects nothing, is a configuration error."""
    with pytest.raises(ConfigError) as caught:
        select_cases(BENCHES, selection)
    for word in words:
        assert word in str(caught.value)


def test_every_board_gets_every_case() -> None:
    """Without limits each selected board measures all selected cases in one boot."""
    plan = make_plan(RACK, BENCHES, selection="publish", board_ids=["v2", "v1"])
    assert [board.board.id for board in plan.boards] == ["v1", "v2"]
    assert all(board.boots == ((SMALL, LARGE, SECURE),) for board in plan.boards)


def test_a_limit_leaves_cases_out_with_the_reason() -> None:
    """A case beyond a board's limit is not measured there, and the plan says why."""
    small_board = replace(RACK.boards[0], limits={"max_payload_bytes": 512})
    rack = replace(RACK, boards=(small_board, RACK.boards[1]))
    limited, free = make_plan(rack, BENCHES, selection="publish").boards
    assert LARGE not in limited.cases
    assert LARGE in free.cases
    assert_reason(limited, "payload_bytes=2048", "max_payload_bytes=512 of board v1")


def assert_reason(plan: BoardPlan, *words: str) -> None:
    """Exactly one case is left out, and its reason names these."""
    (omitted,) = plan.omitted
    assert [word for word in words if word not in omitted.reason] == [], omitted.reason


def planned(case: Case, rack: Rack) -> BoardPlan:
    """Return the plan of the rack's first board for the one case that there is."""
    return make_plan(rack, {case.bench: Source({"nightly": (case,)})}, selection="nightly").boards[0]


def test_packets_that_tls_hides_are_not_dropped() -> None:
    """A case that drops packets of connecting runs over plain TCP only, and the plan says so."""
    pairs = (("connack", "tcp"), ("connack", "tls"), ("syn", "password"), ("broker", "tls"))
    cases = tuple(Case("reconnect", {"cause": cause, "transport": transport}) for cause, transport in pairs)
    plan = make_plan(RACK, {"reconnect": Source({"nightly": cases})}, selection="nightly")
    one = plan.for_board("v1")
    assert one.cases == (cases[0], cases[2], cases[3])
    assert_reason(one, "cause=connack", "transport=tls")


def test_a_bench_for_chips_alone_is_left_out_by_name_on_virtual_boards() -> None:
    """The host has not all drivers: what needs one is no failure there, and its reason is by name."""
    case = Case("adc_jitter", {"count": 100})
    source = {"adc_jitter": Source({"nightly": (case,)}, kinds=("physical",))}
    assert_reason(
        make_plan(RACK, source, selection="nightly").boards[0], "adc_jitter", "physical", "v1 is virtual"
    )
    assert make_plan(lab_rack(), source, selection="nightly").boards[0].cases == (case,)


def lab_rack(*, capture: str = "") -> Rack:
    """Return a rack whose access point is a radio's, with one board."""
    lab = load_rack(RACK.path.parent / "lab-example.yaml")
    return replace(lab, boards=lab.boards[:1], capture=replace(lab.capture, access_point=capture))


@pytest.mark.parametrize(
    ("parameters", "word"),
    [
        ({"air": "hotspot"}, "air=hotspot needs an air"),
        ({"loss_up_ppm": 10_000, "rate_up_kbit": 800}, "rate_up_kbit=800, loss_up_ppm=10000 needs an air"),
        ({"fault": "blackout"}, "fault=blackout needs an air"),
        ({"cause": "access_point"}, "cause=access_point needs an air"),
        ({"fault": "wire"}, "fault=wire needs an interface"),
        ({"cause": "connack"}, "cause=connack needs an interface"),
        ({"air": "rack", "delay_us": -1, "loss_up_ppm": 0, "fault": "kill", "cause": "broker"}, ""),
    ],
)
def test_what_a_real_access_point_cannot_do_is_left_out(parameters: dict[str, Scalar], word: str) -> None:
    """On a rack with a radio, cases that want another air are left out with the reason, never a fault. Frames
    of a board are dropped behind the interface that the rack file names, where it does."""
    case = Case("delivery", parameters)
    plan = planned(case, lab_rack())
    assert plan.cases == (() if word else (case,))
    assert all(omitted.reason.startswith(word) for omitted in plan.omitted)
    assert planned(case, RACK).cases == (case,)
    if "interface" in word:
        assert planned(case, lab_rack(capture="wlan0")).cases == (case,)


@pytest.mark.parametrize(
    ("shapes", "reason"),
    [
        (("rate",), "delay_us=5000, loss_up_ppm=9 needs an air"),
        (("rate", "delay"), "loss_up_ppm=9 needs an air"),
        (("rate", "delay", "loss"), ""),
    ],
)
def test_what_tc_makes_of_a_real_air_is_planned(shapes: tuple[str, ...], reason: str) -> None:
    """Rates, delays and losses are planned as far as the rack file says that tc makes them."""
    lab = lab_rack(capture="wlan0")
    lab = replace(lab, access_point=replace(lab.access_point, shapes=shapes))
    case = Case("echo", {"air": "rack", "delay_us": 5000, "rate_down_kbit": 800, "loss_up_ppm": 9})
    plan = planned(case, lab)
    assert plan.cases == (() if reason else (case,))
    assert all(omitted.reason.startswith(reason) for omitted in plan.omitted)
    assert not planned(Case("echo", {"air": "hotspot"}), lab).cases


def test_a_core_that_the_chip_has_not_is_left_out() -> None:
    """A case that pins a task to core 1 runs on chips with two cores only, and the plan says so."""
    pinned = tuple(Case("publish", {"producer_core": core}) for core in ("none", "0", "1"))
    plan = make_plan(RACK, {"publish": Source({"nightly": pinned})}, selection="nightly")
    assert [board.cases == pinned for board in plan.boards] == [True, True, True, False]
    single = plan.for_board("v4")
    assert single.cases == pinned[:2]
    assert_reason(single, "producer_core=1: ", "esp32c3", "board v4")


@pytest.mark.parametrize(
    ("parameters", "named"),
    [
        ({"placement": "cross"}, "placement=cross"),
        ({"load": "migrate"}, "load=migrate"),
        ({"threads": "all"}, "threads=all"),
        ({"placement": "same", "load": "same_core", "threads": "core0", "task_core": "0"}, ""),
    ],
)
def test_what_needs_two_cores_is_left_out_on_a_chip_with_one(
    parameters: dict[str, Scalar], named: str
) -> None:
    """Words that place tasks on both cores are planned for chips with two, and for others with the reason."""
    case = Case("jitter", parameters)
    plan = make_plan(RACK, {"jitter": Source({"quick": (case,)})}, selection="quick")
    assert all(plan.for_board(board).cases == (case,) for board in ("v1", "v2", "v3"))
    if named:
        assert_reason(plan.for_board("v4"), f"{named} needs two cores", "esp32c3", "board v4")
    else:
        assert plan.for_board("v4").cases == (case,)


@pytest.mark.parametrize("parameter", ["load", "memory"])
def test_psram_is_measured_where_a_label_says_that_it_is_there(parameter: str) -> None:
    """Nothing else tells the plan that a board has it."""
    case = Case("memory", {parameter: "psram"})
    rack = replace(RACK, boards=(replace(RACK.boards[0], labels=("devkit", "psram")), RACK.boards[1]))
    has, has_not = make_plan(rack, {"memory": Source({"quick": (case,)})}, selection="quick").boards
    assert has.cases == (case,)
    assert_reason(has_not, f"{parameter}=psram", "label 'psram'", "board v2")


def test_cases_are_planned_in_stages_by_the_image_that_they_run_on() -> None:
    """All boots of the default image come first; a case runs in as many boots whichever image it needs."""
    fast, slow = (Case("jitter", {"tick_hz": tick_hz}) for tick_hz in ("1000", "100"))
    benches = {"jitter": Source({"quick": (slow, fast)}), "publish": Source({"quick": (SMALL,)})}
    plan = make_plan(RACK, benches, selection="quick", board_ids=["v1", "v4"], boots=2)
    first = plan.boards[0]
    assert [(str(stage.image), stage.boots) for stage in first.stages] == [
        ("virtual-esp32", ((fast, SMALL),) * 2),
        ("virtual-esp32+tick100", ((slow,),) * 2),
    ]
    assert {first.boots_of(case) for case in (fast, slow, SMALL)} == {2}
    images = [f"virtual-{chip}{tick}" for chip in ("esp32", "esp32c3") for tick in ("", "+tick100")]
    assert [str(image) for image in plan.images] == images


def test_a_tick_that_no_image_has_is_refused() -> None:
    """The sentence names the case, and which ticks there are."""
    benches = {"jitter": Source({"quick": (Case("jitter", {"tick_hz": "250"}),)})}
    with pytest.raises(ConfigError, match=r"jitter/.*tick of 250 Hz, which does not exist.*1000 or 100"):
        make_plan(RACK, benches, selection="quick")


def test_a_limit_on_an_unknown_parameter_is_named() -> None:
    """A misspelt limit would silently protect nothing, so it is an error at the board's line."""
    board = replace(RACK.boards[0], limits={"max_payload_byte": 512})
    with pytest.raises(ConfigError, match=r"virtual\.yaml:\d+: limit 'max_payload_byte'.*'payload_bytes'"):
        make_plan(replace(RACK, boards=(board,)), BENCHES, selection="quick")


def test_the_deadline_covers_messages_that_loss_holds_up() -> None:
    """A call may block until the client gives up: each message its network timeout and a new connection."""
    lost = {"count": 10, "network_timeout_ms": 10_000, "reconnect_ms": 1000}
    whole, lossy = (deadline_s(Case("bench", {**lost, "loss_up_ppm": ppm})) for ppm in (0, 250_000))
    assert lossy - whole == pytest.approx(110)


@pytest.mark.parametrize(
    ("parameters", "least_s"),
    [
        ({"count": 200, "warmup": 10, "interval_us": 100_000, "timeout_ms": 5000}, 210 * 0.1 + 5.0),
        ({"duration_s": 30, "timeout_ms": 10_000}, 45.0 + 10.0),
        (
            {"reads": 5, "reads_after_reconnect": 5, "pause_ms": 32_000, "timeout_ms": 10_000},
            10 * 42.0 + 2 * 45.0,
        ),
        ({"reads": 5, "reads_after_reconnect": 0, "timeout_ms": 10_000}, 5 * 10.0 + 45.0),
        ({"duration_s": 10, "amount_bytes": 1_250_000, "timeout_ms": 10_000}, 1.5 * 100.0 + 10.0),
        ({"amount_bytes": 125_000, "rate_kbps": 10, "timeout_ms": 10_000}, 1.5 * 100.0 + 10.0),
        ({"amount_bytes": 2**40}, 1.5 * 3600.0),
        ({"period_us": 10_000, "count": 1000, "warmup": 100, "timeout_ms": 1000}, 1.5 * 11.0 + 1.0),
        ({"loops": 10_000, "interval_us": 1000, "distance_us": 500}, 1.5 * 15.0),
        ({"count": 2000, "warmup": 0, "timeout_ms": 1000}, 1.5 * 20.0 + 1.0),
        ({"windows": 5, "warmup": 1, "window_ms": 2000}, 1.5 * 24.0),
        (
            {"ramps": 2, "step_ms": 500, "base_permille": 300, "raise_permille": 100, "cap_permille": 900},
            1.5 * 2 * 7 * 0.5 * 6,
        ),
        ({"cycles": 6, "outage_ms": 20_000, "timeout_ms": 30_000}, 6 * 50.0),
        (
            {"count": 1000, "interval_us": 20_000, "fault": "kill", "fault_every_ms": 5000, "fault_ms": 500}
            | {"fault_after_ms": 1000, "network_timeout_ms": 10_000, "reconnect_ms": 1000},
            1.5 * 20.0 + 1.0 + 5 * 11.5,
        ),
        (
            {"count": 60, "interval_us": 1_000_000, "cut_every_ms": 20_000, "reconnect_ms": 1000},
            1.5 * 60.0 + 4 * 1.0,
        ),
        ({"count": 100, "interval_us": 20_000, "fault": "none", "fault_ms": 60_000}, 1.5 * 2.0),
    ],
)
def test_the_deadline_covers_what_is_done_one_after_another(
    parameters: dict[str, Scalar], least_s: float
) -> None:
    """A stream's duration, each phase, each read with its pause, each outage and fault have their time."""
    assert least_s < deadline_s(Case("bench", parameters)) < least_s + 80.0


def test_the_plan_waits_for_a_gateway_as_long_as_the_requester() -> None:
    """What a phase may wait for is one figure in the plan and in the requester."""
    (ready_ms,) = (one.default for one in dataclasses.fields(RequesterPlan) if one.name == "ready_timeout_ms")
    assert ready_ms == 1000 * GATEWAY_READY_S


@pytest.mark.parametrize("boots", [0, 101])
def test_the_boots_of_a_run_are_bounded(boots: int) -> None:
    """No boot measures nothing, and a slip of the finger does not book a rack for a week."""
    with pytest.raises(ConfigError, match=f"{boots} boots per board; 1 to 100"):
        make_plan(RACK, BENCHES, selection="quick", boots=boots)


def test_a_pull_request_boots_for_twelve_seconds() -> None:
    """What the shipped suite pr measures in a boot of a board is short, so that four boards have eight boots
    of each build in a quarter of an hour; each of its cases is compared by some metric."""
    thresholds = load_project(SHIPPED)
    plan = make_plan(RACK, thresholds, selection="pr")
    assert max(sum(map(expected_s, board.cases)) for board in plan.boards) <= 12.0
    image = plan.images[0]
    one = compared(plan, image, run_id="", rack="", role="base", candidate_sha256="", other_sha256="")
    found: dict[str, set[str]] = {}
    for case in cases_of(plan, image):
        own = thresholds[case.bench]
        metrics = [each for each in own.metrics_of(case.parameters) if may_block(one, case, each, own)]
        assert metrics, f"{case.case_id} is compared by nothing"
        transport = f" {case.parameters['transport']}" if case.bench == "publish" else ""
        found[f"{case.bench}{transport}"] = {metric.name for metric in metrics}
    times = {"publish_latency_p50_us", "publish_latency_p95_us", "publish_latency_tail5_us"}
    assert found["publish tcp"] == {*times, "publish_failed_ratio"}
    assert "publish_latency_p50_us" in found["publish tls"]
    assert found["throughput"] == {"throughput_mbps"}
    assert found["task_switch"] == {"switch_p50_ns"}

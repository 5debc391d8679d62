# SPDX-License-Identifier: Apache-2.0
"""The plan: selections, limits, deadlines, looks; and the planner of boards, of which nothing is lost."""

from __future__ import annotations

import dataclasses
import itertools
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hil.base.errors import ConfigError
from hil.boards.rack import Rack, load_rack
from hil.gate.pairs import may_block
from hil.model import KINDS, Case, Comparison, Looks, Role, Scalar
from hil.network.peers.gateway.plan import RequesterPlan
from hil.run.plan import BoardPlan, deadline_s, make_plan
from hil.run.plan.comparing import cases_of, compared
from hil.run.plan.deadline import GATEWAY_READY_S, expected_s
from hil.run.plan.looks import (
    FIRST,
    BootPace,
    draw,
    flashes,
    lying,
    order,
    plan_looks,
    steps,
)
from hil.run.plan.schedule import Dispatcher, Item, Queue, Seat, lower_bound_s, simulate
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


ANY = frozenset({"a", "b"})
TWO = [Seat("a", "lab"), Seat("b", "lab")]


def item(
    name: str, seconds: float, *, firmware: str = "f", boards: frozenset[str] = ANY, **needs: bool
) -> Item:
    return Item(name, firmware, seconds, boards, **needs)


def test_the_longest_comes_first() -> None:
    """What takes long begins early, or one board ends alone with it."""
    items = [item("short", 10), item("long", 100), item("middle", 60), item("other", 30)]
    found = simulate(items, TWO, flash_s=0)
    assert [name for name, _board, _begin in found.begins] == ["long", "middle", "other", "short"]
    assert found.makespan_s == lower_bound_s(items, TWO) == 100


def test_a_board_keeps_its_firmware_while_there_is_work_for_it() -> None:
    """Each of two boards is flashed once, though work comes in turns; a firmware that is there is used."""
    items = [item(f"{firmware}{n}", 50, firmware=firmware) for n in range(4) for firmware in ("f", "g")]
    assert simulate(items, TWO, flash_s=10).flashes == 2
    seats = [Seat("a", "lab", "g"), Seat("b", "lab", "f")]
    found = simulate(items, seats, flash_s=10)
    assert found.flashes == 0
    assert {board for name, board, _begin in found.begins if name.startswith("g")} == {"a"}


def test_nobody_is_flashed_for_what_others_end_sooner() -> None:
    """The last seconds of another firmware's work are left to the board that has it."""
    items = [item("f1", 100, firmware="f"), item("g1", 95, firmware="g"), item("f2", 15, firmware="f")]
    seats = [Seat("a", "lab", "f"), Seat("b", "lab", "g")]
    assert simulate(items, seats, flash_s=60).begins[-1][:2] == ("f2", "a")


def test_the_air_is_held_by_one_and_never_left_idle() -> None:
    """Of what needs a rack's air one runs at a time; two racks have two airs; the rest goes on beside it."""
    items = [item(f"air{n}", 50, air=True) for n in range(4)] + [item(f"own{n}", 25) for n in range(4)]
    for seats, racks in ((TWO, 1), ([Seat("a", "lab"), Seat("b", "attic")], 2)):
        found = simulate(items, seats, flash_s=0)
        assert found.makespan_s == lower_bound_s(items, seats) == 200 if racks == 1 else 150
        for rack in {seat.rack for seat in seats}:
            boards = [seat.board for seat in seats if seat.rack == rack]
            begins = sorted(at for name, board, at in found.begins if "air" in name and board in boards)
            assert all(late - early >= 50 for early, late in itertools.pairwise(begins))


def test_what_is_alone_has_the_rack() -> None:
    """Nothing else runs on the rack meanwhile, and nobody waits for the rack to become still."""
    found = simulate([item("own", 30), item("quiet", 20, alone=True), item("more", 30)], TWO, flash_s=0)
    begins = {name: at for name, _board, at in found.begins}
    assert begins == {"quiet": 0, "own": 20, "more": 20}


def test_a_board_that_drops_out_leaves_its_work_to_others() -> None:
    """What it was at is done by another one; what no other can do is named, and nobody waits for it."""
    only = item("only-a", 10, boards=frozenset({"a"}))
    dispatcher = Dispatcher([item("any", 50), only, item("last", 5)], TWO, flash_s=1)
    first = dispatcher.next("a")
    assert first is not None
    assert first.id == "any"
    assert dispatcher.drop("a") == [only]
    names = []
    while (found := dispatcher.wait("b", lambda: None)) is not None:
        names.append(found.id)
        dispatcher.done("b")
    assert names == ["any", "last"]
    assert dispatcher.left == 0
    assert dispatcher.next("a") is None


def test_a_board_leaves_what_it_has_not_done_of_its_own() -> None:
    """Boards begin with a plan each: others wait for it to end, and get what its board says is left of it."""
    begun = {one: item(f"plan of {one}", 100) for one in ("a", "b")}
    dispatcher = Dispatcher([], TWO, flash_s=1, begun=begun)
    assert dispatcher.next("b") is None
    dispatcher.done("b")
    got: list[Item | None] = []
    waiting = threading.Thread(target=lambda: got.append(dispatcher.wait("b", lambda: None)))
    waiting.start()
    only = item("only-a", 10, boards=frozenset({"a"}))
    assert dispatcher.drop("a", [item("rest", 40), only]) == [only]
    waiting.join(60)
    assert [one.id for one in got if one] == ["rest"]
    dispatcher.done("b")
    assert dispatcher.wait("b", lambda: None) is None


def test_a_free_board_waits_for_what_another_may_not_end() -> None:
    """While work for it is under way elsewhere a board stays: it takes that over if the other drops out."""
    dispatcher = Dispatcher([item("one", 50)], TWO, flash_s=1)
    assert dispatcher.next("a") is not None
    taken: list[Item | None] = []
    thread = threading.Thread(target=lambda: taken.append(dispatcher.wait("b", lambda: None)))
    thread.start()
    assert dispatcher.drop("a") == []
    thread.join(timeout=60)
    assert [one and one.id for one in taken] == ["one"]


def test_of_those_that_wait_the_one_with_most_left_is_next() -> None:
    """What takes turns goes to the board that would end last; who waits may be told to stop."""
    queue, order_taken = Queue(), list[str]()

    def stop() -> None:
        raise TimeoutError

    queue.acquire("first", 1, lambda: None)
    with pytest.raises(TimeoutError):
        queue.acquire("impatient", 1000, stop)
    waiting = {"short": 10.0, "long": 50.0}
    seen = {board: threading.Event() for board in waiting}

    def wait_for(board: str) -> None:
        queue.acquire(board, waiting[board], seen[board].set)
        order_taken.append(board)
        queue.release()

    threads = [threading.Thread(target=wait_for, args=(board,)) for board in waiting]
    for thread in threads:
        thread.start()
    assert all(event.wait(60) for event in seen.values())
    queue.release()
    for thread in threads:
        thread.join()
    assert order_taken == ["long", "short"]


def test_a_plan_that_names_something_twice_is_refused() -> None:
    """A board at two racks, or an item that is there twice, is a mistake of whoever plans."""
    with pytest.raises(ConfigError, match="board a is planned twice"):
        Dispatcher([], [Seat("a", "lab"), Seat("a", "attic")], flash_s=1)
    with pytest.raises(ConfigError, match="item x is planned twice"):
        Dispatcher([item("x", 1), item("x", 1)], TWO, flash_s=1)


BOARDS = ("a", "b", "c", "d")
ITEMS = st.lists(
    st.builds(
        lambda firmware, seconds, boards, needs: (firmware, seconds, boards, needs),
        st.sampled_from("fgh"),
        st.floats(1, 100),
        st.frozensets(st.sampled_from(BOARDS), min_size=1),
        st.sampled_from(["", "", "air", "alone"]),
    ),
    max_size=25,
)


@given(ITEMS, st.sampled_from([0.0, 30.0]))
def test_all_is_done_once_by_who_can_and_within_the_rules(
    drawn: list[tuple[str, float, frozenset[str], str]], flash_s: float
) -> None:
    """Whatever the work: each item is done once by a board that can, and no two hold an air at once."""
    items = [
        Item(str(n), firmware, seconds, boards, air=needs == "air", alone=needs == "alone")
        for n, (firmware, seconds, boards, needs) in enumerate(drawn)
    ]
    by_id = {one.id: one for one in items}
    seats = [Seat(board, f"rack{n % 2}") for n, board in enumerate(BOARDS)]
    rack_of = {seat.board: seat.rack for seat in seats}
    found = simulate(items, seats, flash_s=flash_s)
    assert sorted(name for name, _board, _at in found.begins) == sorted(by_id)
    spans = [(rack_of[board], at, at + by_id[name].seconds, by_id[name]) for name, board, at in found.begins]
    assert all(board in by_id[name].boards for name, board, _at in found.begins)
    for n, (rack, begin, end, one) in enumerate(spans):
        for other_rack, other_begin, other_end, other in spans[n + 1 :]:
            if rack == other_rack and begin < other_end and other_begin < end:
                assert not any((one.alone, other.alone))
                assert not (one.air and other.air)
    assert found.makespan_s >= lower_bound_s(items, seats) - 1e-6


BUDGET_S = 900.0
MOST = 40
ROLES: tuple[Role, Role] = ("candidate", "base")
PACES = st.builds(
    BootPace,
    st.lists(st.floats(0.5, 60), min_size=1, max_size=8).map(tuple),
    st.floats(1, 40),
    st.floats(0, 120),
)


@given(PACES, st.integers(2, 200), st.floats(1, 7200))
def test_the_last_look_is_as_large_as_the_budget_allows(pace: BootPace, most: int, budget_s: float) -> None:
    """The first look is always there, each has more boots than the one before, the last ends within the
    budget and the board's boots, and a boot more of each build would not."""
    looks = plan_looks(pace, max_boots=most, budget_s=budget_s)
    totals = [sum(look) for look in looks]
    assert looks[0] == (FIRST, FIRST)
    assert all(before < now for before, now in itertools.pairwise(totals))
    if looks != steps(FIRST):
        assert pace.looks_s(looks) <= budget_s
        assert totals[-1] <= most
    for last in range(looks[-1][0] + 1, most // 2 + 1):
        assert pace.looks_s(steps(last)) > budget_s


@given(PACES, st.floats(1, 7200), st.floats(1, 7200))
def test_a_larger_budget_never_has_fewer_boots(pace: BootPace, one_s: float, other_s: float) -> None:
    """Whatever the boards and their pace."""
    less, more = (plan_looks(pace, max_boots=MOST, budget_s=s) for s in sorted((one_s, other_s)))
    assert less[-1] <= more[-1]


@pytest.mark.parametrize(
    ("boards", "looks"),
    [
        (1, ((3, 3), (5, 5), (8, 8), (16, 16))),
        (2, ((3, 3), (5, 5), (8, 8), (15, 15))),
        (4, ((3, 3), (5, 5), (8, 8))),
    ],
)
def test_a_quarter_of_an_hour_has_its_looks(boards: int, looks: Looks) -> None:
    """Boards of one chip or two: 12 s of cases a boot and board, 12 s to boot, 40 s to write both builds."""
    assert plan_looks(BootPace((12.0,) * boards), max_boots=MOST, budget_s=BUDGET_S) == looks


@pytest.mark.parametrize("last", range(FIRST, 51))
@pytest.mark.parametrize("roles", [ROLES, ROLES[::-1]])
def test_a_drift_falls_on_both_builds_alike(last: int, roles: tuple[Role, Role]) -> None:
    """Each look has as many boots of each; over all so far, and over those of the look alone, the mean places
    of both differ by less than one boot, and a role never comes three times in turn."""
    looks, done = steps(last), list[Role]()
    for look, added in zip(looks, order(looks, roles), strict=True):
        done += added
        assert (done.count("candidate"), done.count("base")) == look
        for of in (done, list(added)):
            places = [[at for at, role in enumerate(of) if role == side] for side in ROLES]
            assert abs(sum(places[0]) - sum(places[1])) <= min(2, len(places[0]))
    assert done[0] == roles[0]
    assert max(len(list(same)) for _role, same in itertools.groupby(done)) <= 2


@pytest.mark.parametrize("last", range(FIRST, 51))
def test_both_builds_are_in_both_slots(last: int) -> None:
    """In the first of several looks they lie one way; after each later look either build had a boot each way,
    and after the last one, or an only look, three eighths of its boots."""
    for looks in (steps(last), ((last, last),)):
        ways, done = lying(looks), list[tuple[bool, Role]]()
        assert len(looks) == 1 or set(ways[0]) == {False}
        for look, own, roles in zip(looks, ways, order(looks, ROLES), strict=True):
            done += zip(own, roles, strict=True)
            for role, way in itertools.product(ROLES, (False, True)):
                if look != steps(last)[0]:
                    is_last = look == looks[-1] and look[0] > 4
                    assert done.count((way, role)) >= (look[0] * 3 / 8 if is_last else 1)


def test_one_swap_in_the_second_look_makes_eight_boots_equal() -> None:
    """Four boots of each build lie either way at the last look of 3, 5 and 8, where the decision falls."""
    ways = [way for look in lying(steps(8)) for way in look]
    assert (ways.count(False), ways.count(True)) == (8, 8)


@pytest.mark.parametrize(
    ("looks", "times"), [(steps(8), (1, 1, 0)), (steps(16), (1, 1, 0, 1)), (((6, 6),), (2,)), ((), ())]
)
def test_the_builds_are_written_at_first_and_at_each_swap(looks: Looks, times: tuple[int, ...]) -> None:
    """Look by look, as the budget counts them: eight boots take one swap, sixteen another."""
    assert flashes(looks) == times


@pytest.mark.parametrize("count", range(1, 9))
def test_what_is_drawn_is_balanced_over_the_boards(count: int) -> None:
    """Half of the boards have the candidate in slot 0 at first, and half boot it first; which ones differs
    from run to run, and is the same for a run whoever asks."""
    boards = tuple(f"b{number}" for number in range(count))
    found = set()
    for run in range(60):
        one = Comparison(f"r{run}", "lab", "esp32", "esp32", boards, "base", "c", "b", ((3, 3),))
        drawn = [draw(one, board) for board in boards]
        assert abs(2 * sum(each.slot for each in drawn) - count) <= 1
        assert abs(2 * sum(each.candidate_first for each in drawn) - count) <= 2
        assert drawn == [draw(one, board) for board in boards]
        draw(one, "a board that took over")
        found.add((drawn[0].slot, drawn[0].candidate_first))
    assert len(found) == 4

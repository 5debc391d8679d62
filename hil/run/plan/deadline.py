# SPDX-License-Identifier: Apache-2.0
"""How long a case takes, and may take, from the parameters that say how long it lasts."""

from __future__ import annotations

from hil.model import Case

GATEWAY_READY_S = 45.0  # how long a gateway may take before each phase until it says that it is ready
AMOUNT_FLOOR_BPS = 100_000.0  # slower than this no transfer by amount is waited for
AMOUNT_MAX_S = 3600.0
ROW_US = 10_000.0  # what a row may take that nothing paces
QUICK_ROW_US = 100.0  # what such a row takes where nothing goes wrong: a switch takes 20 on a host
AROUND_CASE_S = 0.5  # command, warm-up of the network, transfer of the samples
READ_S = 0.03  # a read that finds its peer at work, beside its pause
MQTT_PEER_S = 4.0  # broker, captures and subscriber to start, and what they left to read
MESSAGE_S = 0.0003  # to read one message from two captures
STEP_ATTEMPTS = 6  # of a step that is void (firmware/components/rtos/climb.c)


def expected_s(case: Case) -> float:
    """Return about how long a case takes where nothing goes wrong, in seconds: what a budget is planned with.

    A ramp ends where the board cannot keep up, which is taken for a third of the way.
    """
    planned_s = max(_rows_s(case, QUICK_ROW_US), _number(case, "duration_s"), _windows_s(case) / 2)
    planned_s = max(planned_s, _ramps_s(case) / STEP_ATTEMPTS / 3)
    reads = _number(case, "reads") + _number(case, "reads_after_reconnect")
    reading_s = reads * (_number(case, "pause_ms") / 1e3 + READ_S)
    cycling_s = _number(case, "cycles") * (_number(case, "outage_ms") / 1e3 + 0.1)
    return planned_s + reading_s + cycling_s + _mqtt_peer_s(case) + AROUND_CASE_S


def deadline_s(case: Case) -> float:
    """Return how long a case may take, in seconds.

    A schedule of random intervals may come out half as long again as its mean. What is done one after
    another (reads, cycles) may each take its timeout, so that whoever waits for it there says what it waited
    for. After each fault that the host makes a board may have to notice, wait and connect again; where the
    case loses frames, so may each message. The rest is for the last timeout and the transfer of the samples.
    """
    planned_s = max(
        _rows_s(case), _number(case, "duration_s"), _amount_s(case), _windows_s(case), _ramps_s(case)
    )
    timeout_ms = _number(case, "timeout_ms")
    phases = [reads for name in ("reads", "reads_after_reconnect") if (reads := _number(case, name))]
    reads = sum(phases)
    if case.parameters.get("order") == "interleaved":
        reads *= 3  # at most that many profiles take turns
    reading_ms = reads * (_number(case, "pause_ms") + timeout_ms)
    cycling_ms = _number(case, "cycles") * (_number(case, "outage_ms") + timeout_ms)
    ready_s = GATEWAY_READY_S * len(phases)
    waiting_ms = reading_ms + cycling_ms + timeout_ms
    return 1.5 * planned_s + ready_s + waiting_ms / 1e3 + _faults_s(case) + _losses_s(case) + 45.0


def _rows_s(case: Case, unpaced_us: float = ROW_US) -> float:
    """Return how long rows take that come at an interval or in periods, or each after the one before."""
    rows = _number(case, "count") + _number(case, "warmup") + _number(case, "loops")
    interval_us = _number(case, "interval_us") + _number(case, "distance_us")
    return rows * (max(interval_us, _number(case, "period_us")) or unpaced_us) / 1e6


def _faults_s(case: Case) -> float:
    """Return how long a board may be kept from sending, by all faults that a case's host makes."""
    every_ms = _number(case, "fault_every_ms") or _number(case, "cut_every_ms")
    if not every_ms and case.parameters.get("fault", "none") == "none":
        return 0.0
    count = 1 + (1e3 * _rows_s(case) // every_ms if every_ms else 0)
    lost_ms = sum(_number(case, key) for key in ("fault_ms", "network_timeout_ms", "reconnect_ms"))
    return (_number(case, "fault_after_ms") + count * lost_ms) / 1e3


def _losses_s(case: Case) -> float:
    """Return how long messages may be held up where the case has frames lost on purpose."""
    if not _number(case, "loss_up_ppm") and not _number(case, "loss_down_ppm"):
        return 0.0
    rows = _number(case, "count") + _number(case, "warmup")
    return rows * (_number(case, "network_timeout_ms") + _number(case, "reconnect_ms")) / 1e3


def _mqtt_peer_s(case: Case) -> float:
    """Return what the host's side of a case with a broker of its own takes before and afterwards."""
    if "broker_nodelay" not in case.parameters:
        return 0.0
    return MQTT_PEER_S + MESSAGE_S * (_number(case, "count") + _number(case, "warmup"))


def _windows_s(case: Case) -> float:
    """Return how long windows of counting take: as long as one measures, one may be waited for."""
    windows = _number(case, "windows") and _number(case, "windows") + _number(case, "warmup")
    return 2 * windows * _number(case, "window_ms") / 1e3


def _ramps_s(case: Case) -> float:
    """Return how long it takes to raise a load to its cap, as often as asked for, each step repeated."""
    raised = _number(case, "cap_permille") - _number(case, "base_permille")
    steps = 1 + max(raised, 0) / (_number(case, "raise_permille") or 1)
    return _number(case, "ramps") * steps * STEP_ATTEMPTS * _number(case, "step_ms") / 1e3


def _amount_s(case: Case) -> float:
    """Return how long a transfer by amount may take, at the rate that is asked for or at a slow one."""
    asked_bps = 1000 * _number(case, "rate_kbps") or AMOUNT_FLOOR_BPS
    return min(8 * _number(case, "amount_bytes") / min(asked_bps, AMOUNT_FLOOR_BPS), AMOUNT_MAX_S)


def _number(case: Case, key: str) -> float:
    """Return a parameter that is a number; 0 where the case has none."""
    value = case.parameters.get(key, 0.0)
    return float(value) if isinstance(value, int | float) else 0.0


BOOT_S = 12.0  # switching the slot, reset, boot, network
FLASH_S = 20.0  # an image of 1.1 MB at 460,800 baud, and esptool's connecting

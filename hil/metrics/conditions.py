# SPDX-License-Identifier: Apache-2.0
"""What the values of a board hang on, of all that its records say of the environment."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from hil.model import RunRecord, Scalar

# key in the history → group and key of a record's environment (docs/operate/history.md lists them)
_FACTS = {
    "access_point": ("access_point", "type"),
    "air": ("access_point", "profile"),
    "ssid": ("access_point", "ssid"),
    "channel": ("device", "channel"),
    "link": ("device", "link"),
    "power_save": ("device", "power_save"),
    "sched": ("device", "sched"),
    "cpu_mhz": ("device", "cpu_mhz"),
    "broker": ("broker", "version"),
    "noise": ("noise", "profile"),
    "noise_simulated": ("noise", "simulated"),
    "emulator": ("emulation", "emulator"),
    "icount": ("emulation", "icount"),
    "network": ("emulation", "network"),
    "governor": ("host", "governor"),
    "kernel": ("host", "kernel"),
    "cpu_count": ("host", "cpu_count"),
    "harness": ("rig", "harness_version"),
}
CONDITIONS = (*_FACTS, "clock", "broker_config", "bssid")
_CONFIG_DIGITS = 12
_BSSID_DIGITS = 4
_BETWEEN = " | "


def conditions_of(records: Iterable[RunRecord]) -> dict[str, Scalar]:
    """Return the conditions of one board's records; what changed holds all it was: "6 | 11"."""
    found: dict[str, set[Scalar]] = {}
    for record in records:
        for key, fact in _facts_of(record).items():
            found.setdefault(key, set()).add(fact)
    return {key: _one(facts) for key, facts in sorted(found.items())}


def _facts_of(record: RunRecord) -> dict[str, Scalar]:
    environment = record.environment
    facts = {
        key: environment[group][name]
        for key, (group, name) in _FACTS.items()
        if name in environment.get(group, {})
    }
    facts["clock"] = record.clock
    config, bssid = environment.get("broker", {}).get("config_sha256"), _bssid(record)
    if isinstance(config, str):
        facts["broker_config"] = config[:_CONFIG_DIGITS]
    if bssid:
        facts["bssid"] = bssid
    return facts


def _bssid(record: RunRecord) -> str:
    """Return four digits of the digest of an access point's address.

    They tell one access point from another; the address itself would tell where in the world it stands.
    """
    bssid = record.environment.get("device", {}).get("bssid")
    if not isinstance(bssid, str) or not bssid:
        return ""
    return f"#{hashlib.sha256(bssid.lower().encode()).hexdigest()[:_BSSID_DIGITS]}"


def _one(facts: set[Scalar]) -> Scalar:
    if len(facts) == 1:
        return next(iter(facts))
    return _BETWEEN.join(sorted(map(str, facts)))

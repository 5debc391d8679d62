# SPDX-License-Identifier: Apache-2.0
"""How a product learns where the rack is: by its NVS, by lines typed at its console, or by mDNS.

``hil.toml`` says it in the product's own terms, with words in braces for what the rack knows:

[given]
nvs = {"wifi.ssid" = "{ssid}", "mqtt.uri" = "mqtt://{broker_host}:{broker_port}", "node.period_ms:u32" = 100}
console = ["set wifi {ssid} {password}"]
mdns = "rack-broker"  # the broker is rack-broker.local, and a service _mqtt._tcp of that name
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from hil.base.errors import ConfigError
from hil.base.yamlvalue import did_you_mean

WORDS = (
    "ssid", "password", "broker_host", "broker_port", "broker_user", "broker_password",
    "broker_password_port", "mac", "utc_s",
)  # fmt: skip
SECRETS = ("password", "broker_password")
_KEYS = ("nvs", "console", "mdns")
ENCODINGS = ("u8", "i8", "u16", "i16", "u32", "i32", "u64", "i64")
# namespace and key, of 15 characters each (ESP-IDF, "Non-Volatile Storage Library"); then a number's type
NVS_KEY = re.compile(rf"([^.:]{{1,15}})\.([^.:]{{1,15}})(?::({'|'.join(ENCODINGS)}))?")
MDNS_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?")  # RFC 1123: one label
_WORD = re.compile(r"\{(\w+)\}")


@dataclass(frozen=True)
class Given:
    """What is written to NVS (``namespace.key``: a text or a number), and typed after each boot; and the name
    that the broker has by mDNS, "" for none."""

    nvs: Mapping[str, str | int] = field(default_factory=dict)
    console: Sequence[str] = ()
    mdns: str = ""

    @property
    def is_credentials(self) -> bool:
        """Whether the firmware is told the network's name or password."""
        texts = " ".join(map(str, (*self.nvs.values(), *self.console)))
        return not {"ssid", "password"}.isdisjoint(_WORD.findall(texts))


def read_given(table: object, where: str) -> Given:
    """Read the table [given] of hil.toml. Raises ConfigError: an unknown key or word, another type."""
    if table is None:
        return Given()
    nvs = table.get("nvs", {}) if isinstance(table, dict) else None
    console = table.get("console", []) if isinstance(table, dict) else None
    if not isinstance(table, dict) or not isinstance(nvs, dict) or not isinstance(console, list):
        raise ConfigError(f"{where}: [given] may hold nvs (a table), console (a list) and mdns (a name).")
    for key in table.keys() - set(_KEYS):
        raise ConfigError(f"{where}: unknown key given.{key}{did_you_mean(key, _KEYS)}")
    mdns = _read_mdns(table.get("mdns", ""), where)
    for key, value in nvs.items():
        if not NVS_KEY.fullmatch(key) or not isinstance(value, str | int) or isinstance(value, bool):
            raise ConfigError(
                f"{where}: given.nvs has {key!r} = {value!r}.",
                next_step='write "namespace.key" = "text", or "namespace.key:u32" = a number (i32 by '
                "default); a name has 15 characters at most.",
            )
    if not all(isinstance(line, str) for line in console):
        raise ConfigError(f"{where}: given.console is {console!r}; expected a list of texts.")
    for text in (*nvs.values(), *console):
        for word in _WORD.findall(str(text)):
            if word not in WORDS:
                raise ConfigError(
                    f"{where}: [given] asks for {{{word}}}, which no rack knows{did_you_mean(word, WORDS)}",
                    next_step=f"words: {', '.join(WORDS)}.",
                )
    return Given(nvs, tuple(console), mdns)


def _read_mdns(name: object, where: str) -> str:
    if not isinstance(name, str) or (name and not MDNS_NAME.fullmatch(name)):
        raise ConfigError(
            f"{where}: given.mdns is {name!r}; expected a name of letters, digits and hyphens.",
            next_step='write it without .local, as in mdns = "rack-broker".',
        )
    return name


def filled(text: str, words: Mapping[str, str | int]) -> str:
    """Put the rack's words in place. Braces around anything else stay as they are, as in JSON."""
    return _WORD.sub(lambda found: str(words[found[1]]) if found[1] in words else found[0], text)

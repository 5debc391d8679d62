# SPDX-License-Identifier: Apache-2.0
"""Read ``<stem>.probe.yaml``: what of a product's output is a row, and by what it is ready.

schema: 1
ready: {pattern: 'got ip', within_s: 30}
between:
  from: 'publish seq=(?P<key>\\d+)'
  to: 'acked seq=(?P<key>\\d+)'

docs/start/measure-a-product.md explains the keys. A probe is read once, before anything is taken or built.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from hil.base.errors import ConfigError
from hil.base.yamlfile import Node, loads, read_text

SCHEMA = 1
SUFFIX = ".probe.yaml"
READY_S = 30
READY_MAX_S = 600
KEY = "key"  # the group of a pattern that says which lines belong together
LARGEST_FACTOR = 1_000_000

Restart = Literal["fault", "count"]
RESTARTS: tuple[Restart, ...] = ("fault", "count")


@dataclass(frozen=True)
class Pattern:
    """A regular expression, and where it stands: ``file:line``."""

    text: str
    where: str
    compiled: re.Pattern[str]

    def search(self, line: str) -> re.Match[str] | None:
        return self.compiled.search(line)


@dataclass(frozen=True)
class Field:
    """A value in a message's payload: at a path of a JSON object, or what a pattern's first group finds."""

    where: str
    path: tuple[str, ...] = ()
    pattern: Pattern | None = None

    @property
    def text(self) -> str:
        return self.pattern.text if self.pattern else ".".join(self.path)


@dataclass(frozen=True)
class Between:
    """From a line to the line that answers it; those with the same ``key`` where the patterns have one."""

    start: Pattern
    end: Pattern

    @property
    def columns(self) -> Sequence[str]:
        return ("began_us", "done_us", "outcome")


@dataclass(frozen=True)
class Values:
    """Numbers in a line, one column a named group; ``factors`` make whole numbers of decimals."""

    line: Pattern
    factors: Mapping[str, int]

    @property
    def names(self) -> Sequence[str]:
        return tuple(self.line.compiled.groupindex)

    @property
    def columns(self) -> Sequence[str]:
        return ("seen_us", *self.names, "outcome")


@dataclass(frozen=True)
class BootRows:
    """From the first byte that a reset board sends to a line: one row a boot."""

    end: Pattern

    @property
    def columns(self) -> Sequence[str]:
        return ("began_us", "done_us", "outcome")


@dataclass(frozen=True)
class Arrivals:
    """Messages as they come to a subscriber at the rack's broker, by their sequence number.

    ``modulus``: how many numbers come before they begin anew; 0 where the file does not say.
    """

    topic: str
    sequence: Field
    sent_at: Field | None
    modulus: int = 0

    @property
    def columns(self) -> Sequence[str]:
        sent = ("sent_us",) if self.sent_at else ()
        return ("sequence", "previous_us", "arrived_us", *sent, "copies_count", "outcome")


@dataclass(frozen=True)
class ProbeRequest:
    """A request that the host publishes, and the product's answer. ``{n}`` is its number."""

    topic: str
    payload: str
    reply_topic: str
    key: Field

    @property
    def columns(self) -> Sequence[str]:
        return ("planned_us", "sent_us", "done_us", "outcome")


@dataclass(frozen=True)
class Download:
    """What the product fetches from the rack's HTTP server after it was told to."""

    topic: str
    payload: str
    file: str

    @property
    def columns(self) -> Sequence[str]:
        return ("asked_us", "began_us", "done_us", "size_bytes", "outcome")


Measures = Between | Values | BootRows | Arrivals | ProbeRequest | Download


@dataclass(frozen=True)
class Probe:
    """One file. ``digest`` is of its content: figures of another text are another ruler's."""

    stem: str
    path: Path
    ready: Pattern
    ready_s: int
    measures: Measures
    restart: Restart
    digest: str

    @property
    def parameters(self) -> Sequence[str]:
        """The parameters that its thresholds file has to have."""
        match self.measures:
            case BootRows():
                return ("timeout_ms",)
            case Values():
                return ("count", "duration_s")
            case Between() | Arrivals():
                return ("count", "duration_s", "timeout_ms")
            case ProbeRequest():
                return ("count", "interval_us", "timeout_ms")
            case Download():
                return ("timeout_ms",)


def find_probes(folders: Sequence[Path]) -> dict[str, Probe]:
    """Return the probes of folders of benches, by stem. Raises ConfigError."""
    paths = sorted(path for folder in folders for path in folder.glob(f"*{SUFFIX}"))
    return {probe.stem: probe for probe in map(read_probe, paths)}


def read_probe(path: Path) -> Probe:
    """Read a probe file. Raises ConfigError with file, line and the way out."""
    text = read_text(path, label=str(path))
    root = loads(text, label=str(path))
    schema = root.integer("schema")
    if schema != SCHEMA:
        raise root.error("schema", f"schema {schema} is not known.", next_step=f"write schema: {SCHEMA}.")
    ready = root.section("ready")
    pattern, ready_s = (
        _pattern(ready, "pattern"),
        ready.integer("within_s", default=READY_S, minimum=1, maximum=READY_MAX_S),
    )
    restart: Restart = "count" if root.choice("on_restart", RESTARTS, default="fault") == "count" else "fault"
    kinds = [key for key in root.keys if key in _READERS]
    if len(kinds) != 1:
        found = f"both {kinds[0]} and {kinds[1]}" if kinds else "nothing that is measured"
        raise root.error(
            kinds[1] if kinds else "", f"a probe measures exactly one thing, but this probe has {found}.",
            next_step=f"one of: {', '.join(_READERS)}.",
        )  # fmt: skip
    measures = _READERS[kinds[0]](root.section(kinds[0]))
    root.finish()
    return Probe(
        stem=path.name.removesuffix(SUFFIX),
        path=path,
        ready=pattern,
        ready_s=ready_s,
        measures=measures,
        restart=restart,
        digest=hashlib.sha256(text.encode()).hexdigest(),
    )


def _pattern(node: Node, key: str) -> Pattern:
    text = node.text(key)
    try:
        return Pattern(text, node.where(key), re.compile(text))
    except re.error as error:
        raise node.error(key, f"{text!r} is not a regular expression: {error}.") from None


def _between(node: Node) -> Between:
    found = Between(_pattern(node, "from"), _pattern(node, "to"))
    keyed = [KEY in pattern.compiled.groupindex for pattern in (found.start, found.end)]
    if any(keyed) and not all(keyed):
        raise node.error(
            "to" if keyed[0] else "from",
            f"only the other pattern has a group {KEY!r}, so lines cannot be matched to each other.",
            next_step=f"write (?P<{KEY}>…) into both patterns, or into neither.",
        )
    return found


def _values(node: Node) -> Values:
    line = _pattern(node, "line")
    factors = {}
    if (section := node.section("times", default=None)) is not None:
        factors = {name: section.integer(name, minimum=1, maximum=LARGEST_FACTOR) for name in section.keys}
    if not line.compiled.groupindex or {"seen_us", "outcome"} & set(line.compiled.groupindex):
        raise node.error(
            "line",
            "each number must be a named group, with its unit.",
            next_step=r"such as 'heap=(?P<heap_bytes>\d+)'.",
        )
    for name in factors:
        if name not in line.compiled.groupindex:
            raise node.error("times", f"the line has no group {name!r}.")
    return Values(line, factors)


def _boot(node: Node) -> BootRows:
    return BootRows(_pattern(node, "to"))


def _field(node: Node, key: str) -> Field:
    """Read a field: the path of a JSON value as a text, or a pattern."""
    if not node.is_section(key):
        return Field(node.where(key), path=tuple(node.text(key).split(".")))
    section = node.section(key)
    pattern = _pattern(section, "pattern")
    if pattern.compiled.groups != 1:
        raise section.error("pattern", "the pattern must have exactly one group, the value.")
    return Field(node.where(key), pattern=pattern)


def _arrivals(node: Node) -> Arrivals:
    sent_at = _field(node, "sent_at_us") if "sent_at_us" in node else None
    modulus = node.integer("modulus", minimum=2, maximum=2**64) if "modulus" in node else 0
    return Arrivals(node.text("topic"), _field(node, "sequence"), sent_at, modulus)


def _request(node: Node) -> ProbeRequest:
    payload = node.text("payload")
    if "{n}" not in payload:
        raise node.error(
            "payload", "{n}, the number of the request, is missing, so answers cannot be matched."
        )
    return ProbeRequest(node.text("topic"), payload, node.text("reply_topic"), _field(node, "key"))


def _download(node: Node) -> Download:
    payload = node.text("payload")
    if "{url}" not in payload:
        raise node.error(
            "payload", "{url}, the address, is missing, so the product does not know what to fetch."
        )
    return Download(node.text("topic"), payload, node.text("file", default="firmware"))


_READERS: Mapping[str, Any] = {
    "between": _between,
    "values": _values,
    "boot": _boot,
    "arrivals": _arrivals,
    "request": _request,
    "download": _download,
}


def check_parameters(probe: Probe, parameters: Mapping[str, object], source: str) -> None:
    """Raise ConfigError where a thresholds file lacks a parameter that the probe is measured by."""
    for name in probe.parameters:
        if name not in parameters:
            raise ConfigError(
                f"{source}: {probe.path.name} needs the parameter {name!r}, which is missing.",
                next_step=f"it is measured by {', '.join(probe.parameters)}; warmup may come on top.",
            )

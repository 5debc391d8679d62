# SPDX-License-Identifier: Apache-2.0
"""The air of a real access point made worse by Linux: tc at its interface, by the virtual air's parameters.

Rates are htb's, delay and loss netem's. Downlink is what the interface sends, uplink what it receives, which
goes over an interface of ours (ifb). IPv4 packets of the one board are touched alone: all else on the
interface stays as it is.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, fields, replace
from pathlib import Path

from hil.base.errors import ConfigError, HilError, RigError
from hil.base.finding import Finding
from hil.base.process import how_ended
from hil.network.process import LocalSpawner, Spawner, run_to_end, system_program
from hil.virtual.air.control import Number
from hil.virtual.air.profile import AirProfile, Impairment

IFB = "hil-ifb0"
ROOT, LEAF = "7a1:", "7a2:"  # our handles: what has them, a run of ours has made
RATE_MAX_KBIT = 10_000_000
MTU_BYTES = 1514
NETEM_LIMIT_FRAMES = 10_000
TIMEOUT_S = 15.0
# What a kernel puts there by itself, so that nothing of anybody's is lost with it.
_DEFAULTS = ("noqueue", "mq", "fq_codel", "pfifo_fast", "fq", "cake", "htb " + ROOT)
_IMPAIRMENT = {field.name for field in fields(Impairment)}


class ShapedAir:
    """The link of one board through an interface of this host; the part of AirControl that a case needs.

    Every method raises RigError where tc fails, ConfigError for what tc cannot do.
    """

    def __init__(self, spawner: Spawner, interface: str, board: str, address: str, log_path: Path) -> None:
        self.where = f"by tc at {interface}: on the rack's host, before the access point"
        self._spawner = spawner
        self._interface = interface
        self._board = board
        self._address = address
        self._log_path = log_path
        self._links = {"uplink": Impairment(), "downlink": Impairment()}

    def show(self, board: str) -> Mapping[str, Mapping[str, Mapping[str, Number]]]:
        """Return board → uplink | downlink → the parameters in force."""
        return {board: {direction: asdict(link) for direction, link in self._links.items()}}

    def set(self, board: str, direction: str = "both", **parameters: Number) -> None:
        """Change parameters of the board's link; the others stay. One that is as by default costs nothing."""
        self._only(board)
        changed = {key: value for key, value in parameters.items() if key in _IMPAIRMENT}
        links = dict(self._links)
        for each in self._links if direction == "both" else (direction,):
            links[each] = replace(links[each], **changed)  # type: ignore[arg-type]
            _check(links[each])
        if links != self._links:
            self._apply(links)
            self._links = links

    def gap(self, board: str, **parameters: Number) -> None:
        """tc has none: what asks for no gap changes nothing."""
        self._only(board)
        if parameters.get("interval_us"):
            raise _cannot("gaps")

    def profile(self, profile: AirProfile, board: str = "all") -> None:
        """Apply a whole profile."""
        self.gap(board, **profile.gap.parameters())
        self.set(board, "uplink", **profile.uplink.parameters())
        self.set(board, "downlink", **profile.downlink.parameters())

    def down(self, board: str) -> None:
        raise _cannot(f"a blackout of board {board}")

    def up(self, board: str) -> None:
        """It was never down."""

    def remove(self) -> None:
        """Take away what was made. Never raises."""
        with suppress(HilError):
            remove(self._spawner, self._interface, self._log_path)
        self._links = {"uplink": Impairment(), "downlink": Impairment()}

    def _only(self, board: str) -> None:
        if board not in ("all", self._board):
            raise RigError(f"this air belongs to board {self._board}, not to {board}.")

    def _apply(self, links: Mapping[str, Impairment]) -> None:
        """Make the links what they are to be, from nothing: htb's root cannot be changed."""
        self._require_free()
        try:
            remove(self._spawner, self._interface, self._log_path)
            for direction, link in links.items():
                if link != Impairment():
                    for argv in commands_for(self._interface, self._address, direction, link):
                        self._run(argv)
        except BaseException:
            self.remove()
            raise

    def _require_free(self) -> None:
        """Raise RigError where somebody else shapes the interface: that would be lost."""
        said = self._run(["tc", "qdisc", "show", "dev", self._interface])
        root = re.search(r"^qdisc (\S+ \S+) root", said, re.M)
        if root and not root[1].startswith(_DEFAULTS):
            raise RigError(
                f"{self._interface} has a qdisc of its own ({root[1]}), which shaping would replace.",
                next_step=f"remove it (tc qdisc del dev {self._interface} root), or leave 'shapes' out "
                "of the rack file.",
            )

    def _run(self, argv: Sequence[str]) -> str:
        return run_tc(self._spawner, argv, self._log_path)


def _check(link: Impairment) -> None:
    """Raise ConfigError where tc does not do what the virtual air does by these parameters."""
    if link.jitter_us and link.keep_order:
        raise _cannot("jitter that keeps the order of frames (jitter_us with keep_order=1)")
    if link.loss_ppm and link.burst_start_ppm:
        raise _cannot("independent loss and bursts at once")
    if link.overhead_bytes:
        raise _cannot(f"overhead_bytes={link.overhead_bytes}")
    if link.limit_bytes != Impairment().limit_bytes and netem_words(link):
        raise _cannot(f"limit_bytes={link.limit_bytes} with delay or loss, as netem counts frames,")
    if link.reorder_ppm and not link.delay_us:
        raise _cannot("reordering without a delay")


def _cannot(what: str) -> ConfigError:
    return ConfigError(
        f"tc does not support {what} as the virtual air does.",
        next_step="measure the case on a virtual rack, or leave it out.",
    )


def commands_for(interface: str, address: str, direction: str, link: Impairment) -> list[list[str]]:
    """Return the commands that give a board's packets of one direction this link, and no other packet."""
    device = interface if direction == "downlink" else IFB
    made: list[list[str]] = []
    if direction == "uplink":
        made += [
            ["ip", "link", "add", IFB, "type", "ifb"],
            ["ip", "link", "set", IFB, "up"],
            ["tc", "qdisc", "add", "dev", interface, "handle", "ffff:", "ingress"],
            [
                *(
                    "tc",
                    "filter",
                    "replace",
                    "dev",
                    interface,
                    "parent",
                    "ffff:",
                    "protocol",
                    "ip",
                    "prio",
                    "1",
                ),
                *("handle", "800::1", "u32", "match", "ip", "src", f"{address}/32"),
                *("action", "mirred", "egress", "redirect", "dev", IFB),
            ],
        ]
    rate = f"{link.rate_kbit or RATE_MAX_KBIT}kbit"
    burst = f"{max(2 * MTU_BYTES, 5 * (link.rate_kbit or RATE_MAX_KBIT) // 4)}b"  # of 10 ms
    match = "dst" if direction == "downlink" else "src"
    made += [
        ["tc", "qdisc", "replace", "dev", device, "root", "handle", ROOT, "htb", "default", "0"],
        [
            *("tc", "class", "add", "dev", device, "parent", ROOT, "classid", f"{ROOT}1"),
            *("htb", "rate", rate, "ceil", rate, "burst", burst, "cburst", burst, "quantum", str(MTU_BYTES)),
        ],
        [
            *("tc", "filter", "add", "dev", device, "parent", ROOT, "protocol", "ip", "prio", "1"),
            *("u32", "match", "ip", match, f"{address}/32", "flowid", f"{ROOT}1"),
        ],
    ]
    words = netem_words(link)
    kind = (
        ["netem", "limit", str(NETEM_LIMIT_FRAMES), *words]
        if words
        else ["bfifo", "limit", f"{link.limit_bytes}"]
    )
    made.append(["tc", "qdisc", "add", "dev", device, "parent", f"{ROOT}1", "handle", LEAF, *kind])
    return made


def netem_words(link: Impairment) -> list[str]:
    """Return netem's words for a link; none where a rate is all."""
    words: list[str] = []
    if link.delay_us or link.jitter_us:
        words += ["delay", f"{link.delay_us}us"]
        if link.jitter_us:
            words += [f"{link.jitter_us}us", *_percent(link.correlation_ppm)]
            words += ["distribution", "normal"] if link.distribution == "normal" else []
    if link.loss_ppm:
        words += ["loss", "random", *_percent(link.loss_ppm)]
    if link.burst_start_ppm:
        ppm = (link.burst_start_ppm, link.burst_end_ppm, link.burst_loss_ppm, link.burst_good_loss_ppm)
        words += ["loss", "gemodel", *(word for value in ppm for word in _percent(value))]
    if link.duplicate_ppm:
        words += ["duplicate", *_percent(link.duplicate_ppm)]
    if link.reorder_ppm:
        words += ["reorder", *_percent(link.reorder_ppm)]
    return words


def _percent(ppm: int) -> list[str]:
    return [f"{ppm / 10_000:.4f}%"]


def run_tc(spawner: Spawner, argv: Sequence[str], log_path: Path) -> str:
    """Run tc or ip and return what it printed. Raises RigError."""
    program = system_program(argv[0], "iproute2", "Shaping the air")
    code, said = run_to_end(spawner, [program, *argv[1:]], TIMEOUT_S, log_path=log_path)
    if code == 0 or (argv[:3] == ["ip", "link", "add"] and "File exists" in said):
        return said
    words = said.strip().replace("\n", " | ") or how_ended(code)
    next_step = f"try it by hand: {' '.join(argv)}"
    if "not permitted" in said:
        next_step = "run as root: tc changes the interface."
    elif "kind is unknown" in said or "Unknown device type" in said:
        next_step = (
            f"this kernel has no {'netem' if 'netem' in argv else argv[-1]}: sudo apt-get install "
            "linux-modules-extra-$(uname -r), or leave it out of 'shapes' in the rack file."
        )
    raise RigError(f"`{' '.join(argv)}` failed: {words}.", next_step=next_step, log=str(log_path))


def remove(spawner: Spawner, interface: str, log_path: Path) -> None:
    """Take away what a run of ours made at an interface, also one that died. Raises RigError."""
    said = run_tc(spawner, ["tc", "qdisc", "show", "dev", interface], log_path)
    if f"qdisc htb {ROOT} root" in said:
        run_tc(spawner, ["tc", "qdisc", "del", "dev", interface, "root"], log_path)
    program = system_program("ip", "iproute2", "Shaping the air")
    code, _said = run_to_end(spawner, [program, "link", "show", IFB], TIMEOUT_S, log_path=log_path)
    if code == 0:  # and so the ingress qdisc is ours, too
        if "ingress ffff:" in said:
            run_tc(spawner, ["tc", "qdisc", "del", "dev", interface, "ingress"], log_path)
        run_tc(spawner, ["ip", "link", "del", IFB], log_path)


def check_shaping(interface: str, shapes: Sequence[str], folder: Path) -> Finding:
    """Look whether tc could make these changes, in a network namespace of its own: nothing is touched."""
    subject = f"shaping at {interface}"
    if not Path("/sys/class/net", interface).exists():
        return Finding(
            subject, ok=False, sentence="there is no such interface.", mend="correct the rack file."
        )
    link = Impairment(
        rate_kbit=1000 * ("rate" in shapes),
        delay_us=1000 * ("delay" in shapes),
        loss_ppm=1000 * ("loss" in shapes),
    )
    apart = ["unshare", *(["--user", "--map-root-user"] if os.geteuid() else []), "--net"]
    script = "set -e\n" + "\n".join(
        " ".join(argv)
        for direction in ("downlink", "uplink")
        for argv in commands_for("lo", "127.0.0.1", direction, link)
    )
    file, log = folder / "tc.sh", folder / "tc.log"
    file.write_text(script, encoding="utf-8")
    try:
        code, said = run_to_end(LocalSpawner(), [*apart, "sh", str(file)], TIMEOUT_S, log_path=log)
    except HilError as error:
        return Finding(subject, ok=False, sentence=error.sentence, mend=error.next_step)
    if code == 0:
        return Finding(subject, ok=True, sentence=f"tc has {', '.join(shapes)}")
    words = said.strip().replace("\n", " | ") or how_ended(code)
    if "unshare" in said:  # a host that gives plain users no namespaces
        sentence = f"this user cannot try it: {words}"
        return Finding(subject, ok=False, sentence=sentence, mend="try it as root.", needed=False)
    mend = (
        "sudo apt-get install linux-modules-extra-$(uname -r), or leave it out of 'shapes': a rate needs no "
        "netem."
    )
    return Finding(subject, ok=False, sentence=f"tc cannot: {words}", mend=mend)

# SPDX-License-Identifier: Apache-2.0
"""The access point: part of the virtual rack, one that a run drives, somebody else's, or none.

One run at a time owns an access point that it drives, as it owns its boards.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, astuple, dataclass, field
from pathlib import Path
from typing import Protocol

from hil.base.errors import ConfigError, HilError, RigError
from hil.base.finding import Finding
from hil.base.flock import wait_for_lock
from hil.base.process import how_ended
from hil.base.secret import secret, way_out
from hil.boards.lease import (
    GRACE_S,
    PHYSICAL_LOCK_DIR,
    UNKNOWN_HOLDER,
    open_lock,
    read_holder,
    write_holder,
    write_record,
)
from hil.boards.rack.access_point import PASSWORD_CHARACTERS, AccessPoint
from hil.model import Scalar
from hil.network.hostapd import Hostapd, check_hostapd
from hil.network.process import Spawner, run_to_end
from hil.network.radio import RadioLook, read_iw

ANY_SSID = "virtual"  # where a virtual rack file names no network, this one is as good as each
_KEY = re.compile(r"[0-9A-Fa-f]{64}")  # IEEE 802.11: in place of a password


@dataclass(frozen=True)
class VirtualAccessPoint:
    """The bridge of a virtual rack behind the air profile ``profile``; the agent needs no credentials.
    A product's station does, where ``ssid`` names a network: else it is let in by any."""

    profile: str
    seed: int
    ssid: str = ""
    password: str = ""

    def credentials(self) -> Mapping[str, str]:
        return {}

    def environment(self) -> Mapping[str, int | str]:
        return {"type": "virtual", "profile": self.profile, "seed": self.seed}

    def network(self) -> tuple[str, str]:
        """Return the name and the password that a product is given."""
        return self.ssid or ANY_SSID, self.password


@dataclass(frozen=True)
class ExternalAccessPoint:
    """A real access point: somebody else's, or one that the run drives as ``settings`` say."""

    ssid: str
    psk: str = field(repr=False)
    settings: AccessPoint = field(default_factory=lambda: AccessPoint("external"))

    def credentials(self) -> Mapping[str, str]:
        """Return the fields that a board is provisioned with; never log them."""
        return {"ssid": self.ssid, "psk": self.psk}

    def environment(self) -> Mapping[str, Scalar]:
        """Return what a record says: name and settings, never the password."""
        radio = self.settings.radio
        return {"type": self.settings.type, "ssid": self.ssid, **(asdict(radio) if radio else {})}

    def network(self) -> tuple[str, str]:
        """Return the name and the password that a product is given; never log them."""
        return self.ssid, self.psk


@dataclass(frozen=True)
class NoAccessPoint:
    """A rack of boards on cables (``wired``), or a run whose boards are told no network (``none``)."""

    type: str = "wired"

    def credentials(self) -> Mapping[str, str]:
        return {}

    def environment(self) -> Mapping[str, int | str]:
        return {"type": self.type}

    def network(self) -> tuple[str, str]:
        return "", ""


RackAccessPoint = VirtualAccessPoint | ExternalAccessPoint | NoAccessPoint


def external_access_point(settings: AccessPoint) -> ExternalAccessPoint:
    """Read the password from the environment variable or the file. Raises ConfigError."""
    ssid = settings.ssid
    if not ssid:
        raise ConfigError(
            f"The environment variable {settings.ssid_env} holds no access point name.",
            next_step=f"{way_out(settings.ssid_env)}, and {settings.psk_env or settings.psk_file}; at a "
            "terminal hil run --port PORT asks for both, once.",
        )
    psk = _from_environment(settings.psk_env) if settings.psk_env else ""
    if settings.psk_file:
        psk = _from_file(Path(settings.psk_file))
    check_password(ssid, psk, settings.psk_env or settings.psk_file)
    return ExternalAccessPoint(ssid, psk, settings)


def check_password(ssid: str, psk: str, where: str) -> None:
    """Raise ConfigError where IEEE 802.11 allows no such password; it is not shown."""
    if len(psk) not in PASSWORD_CHARACTERS and not _KEY.fullmatch(psk):
        raise ConfigError(
            f"The password of the access point {ssid!r} has {len(psk)} characters; expected 8 to "
            "63, or a key of 64 hexadecimal digits.",
            next_step=f"correct it in {where}.",
        )
    if not (psk.isascii() and psk.isprintable()):
        raise ConfigError(
            f"The password of the access point {ssid!r} has characters that are not printable ASCII.",
            next_step="look for a line break or an umlaut in it: IEEE 802.11 allows neither.",
        )


class DrivenAccessPoint(Protocol):
    """What a run has made of an access point: Hostapd or CommandedAccessPoint. ``interface`` is that of this
    host, "" where the radio is elsewhere."""

    interface: str

    def check(self) -> None:
        """Raise RigError where it is gone."""

    def look(self) -> RadioLook:
        """Return what its radio says now. Never raises."""

    def stop(self) -> None:
        """Give it back as it was. Never raises."""


class CommandedAccessPoint:
    """An access point that four commands of the rack file drive. One that takes longer than its time is ended
    with all that it started."""

    interface = ""

    def __init__(self, settings: AccessPoint, spawner: Spawner, log_path: Path) -> None:
        self._settings = settings
        self._spawner = spawner
        self._log_path = log_path

    @classmethod
    def start(cls, settings: AccessPoint, spawner: Spawner, log_path: Path) -> CommandedAccessPoint:
        """Run ``up``. Raises RigError: it failed, or did not end in time; ``down`` has been run then."""
        made = cls(settings, spawner, log_path)
        try:
            made._run("up")
        except BaseException:
            made.stop()
            raise
        return made

    def check(self) -> None:
        """Nobody here knows."""

    def look(self) -> RadioLook:
        try:
            return read_iw(self._run("station") + self._run("survey"))
        except HilError as error:
            return RadioLook(error=error.sentence)

    def stop(self) -> None:
        with suppress(HilError):
            self._run("down")

    def _run(self, name: str) -> str:
        command = getattr(self._settings.commands, name)
        if not command:
            return ""
        limit_s = self._settings.timeout_s
        code, said = run_to_end(self._spawner, shlex.split(command), limit_s, log_path=self._log_path)
        if code == 0:
            return said
        last = said.strip().rpartition("\n")[2] or "nothing"
        end = (
            f"did not end within {limit_s:g} s and was ended" if code == -signal.SIGKILL else how_ended(code)
        )
        raise RigError(
            f"The command {name!r} of the access point {self._settings.ssid!r}, '{command}', {end}; "
            f"it said: {last}.",
            log=str(self._log_path),
            next_step="run it by hand, or mend it in the rack file.",
        )


LEASES = PHYSICAL_LOCK_DIR / "_access-points"  # no rack may be called so


@contextmanager
def lease_part(name: str, what: str, *, run_id: str, folder: Path | None = None) -> Iterator[None]:
    """Hold a radio, a network or an interface that this run changes, alone among this host's runs.

    Raises RigError naming the holder.
    """
    folder = folder or LEASES
    file = open_lock(folder / f"{name}.lock")
    try:
        if not wait_for_lock(file, timeout_s=GRACE_S, waiting=lambda: None):
            holder = read_holder(folder, name) or UNKNOWN_HOLDER
            raise RigError(
                f"The {what} ({name}) is held by {holder.describe()}.",
                next_step="wait for that run: runs do not share what a run changes.",
            )
        write_holder(file, run_id)
        yield
        write_record(file, b"")
    finally:
        os.close(file)


@contextmanager
def driven_access_point(
    point: ExternalAccessPoint, spawner: Spawner, secrets_dir: Path, log_dir: Path, *, run_id: str
) -> Iterator[DrivenAccessPoint | None]:
    """Yield the access point as its settings want it, and give it back; None where nobody drives it.

    Raises RigError, ConfigError with the way out.
    """
    settings = point.settings
    if not settings.is_driven:
        yield None
        return
    with lease_part(settings.lease_name, f"access point {settings.ssid!r}", run_id=run_id):
        made = _start(point, spawner, secrets_dir, log_dir)
        try:
            yield made
        finally:
            made.stop()


def _start(
    point: ExternalAccessPoint, spawner: Spawner, secrets_dir: Path, log_dir: Path
) -> DrivenAccessPoint:
    log_dir.mkdir(parents=True, exist_ok=True)
    if point.settings.type == "hostapd":
        return Hostapd.start(spawner, point.settings, point.psk, secrets_dir, log_dir / "hostapd.log")
    return CommandedAccessPoint.start(point.settings, spawner, log_dir / "commands.log")


def check_access_point(settings: AccessPoint) -> list[Finding]:
    """Look whether a run could have the access point: password, programs, rights, radio, who holds it now."""
    if settings.type == "wired":
        return []
    subject = f"access point {settings.ssid or settings.ssid_env}"
    password = _check_password(subject, settings)
    if not settings.is_driven:
        return [password]
    if holder := read_holder(LEASES, settings.lease_name):
        return [password, Finding(subject, ok=True, sentence=f"in use by {holder.describe()}")]
    if settings.type == "hostapd":
        return [password, *check_hostapd(settings)]
    commands = [command for command in astuple(settings.commands) if command]
    return [password, *(_check_command(subject, command) for command in commands)]


def _check_password(subject: str, settings: AccessPoint) -> Finding:
    """Read the password as a run does, and say where it is."""
    try:
        external_access_point(settings)
    except HilError as error:
        return Finding(subject, ok=False, sentence=error.sentence, mend=error.next_step)
    return Finding(subject, ok=True, sentence=f"its password is in {settings.psk_env or settings.psk_file}")


def _check_command(subject: str, command: str) -> Finding:
    program = shlex.split(command)[0]
    if shutil.which(program):
        return Finding(subject, ok=True, sentence=f"{program} is there")
    return Finding(
        subject, ok=False, sentence=f"its command {command!r} is not installed.", mend="install it."
    )


def _from_environment(name: str) -> str:
    psk = secret(name)
    if not psk:
        raise ConfigError(
            f"The environment variable {name} holds no access point password.",
            next_step=way_out(name),
        )
    return psk


def _from_file(path: Path) -> str:
    try:
        psk = path.expanduser().read_text(encoding="utf-8").strip()
        problem = "" if psk else "it is empty"
    except (OSError, ValueError) as error:
        psk, problem = "", getattr(error, "strerror", "") or "it is no text"
    if problem:
        raise ConfigError(
            f"Reading the access point's password from {path}: {problem}.",
            next_step="write the password into it, and make it readable only by the user that runs hil.",
        )
    return psk

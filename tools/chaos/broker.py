# SPDX-License-Identifier: Apache-2.0
"""Faults of the broker, of its certificates, of its other clients, and of the peers beside it."""

from __future__ import annotations

import os
import shutil
import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread

from hil.network.preload.build import build_library
from tests.lab import ROOT
from tools.chaos.air import HOST, answered, beside, signalled, stopped
from tools.chaos.fault import MOMENTS, Act, Fault, Moment, Owner
from tools.chaos.programs import CLIENT, GARBAGE, GOES, HALF_OPEN, IN_THE_WAY, NOTHING, SLOW
from tools.chaos.trial import Trial


def shim(program: str, script: str) -> Act:
    """Return what puts a script before a program; `$REAL` is the program itself."""

    @contextmanager
    def act(trial: Trial) -> Iterator[None]:
        folder = trial.lab_folder / "shims"
        folder.mkdir(exist_ok=True)
        path = folder / program
        path.write_text(f"#!/bin/sh\nREAL=$(PATH=/usr/sbin:/usr/bin:/bin command -v {program})\n{script}\n")
        path.chmod(0o755)
        trial.env["PATH"] = f"{folder}:{trial.env['PATH']}"
        yield
        path.unlink()

    return act


def customized(code: str) -> Act:
    """Return what runs Python code at the start of each Python of the run: certificates are made there."""

    @contextmanager
    def act(trial: Trial) -> Iterator[None]:
        folder = trial.lab_folder / "site"
        folder.mkdir(exist_ok=True)
        path = folder / "sitecustomize.py"
        path.write_text(code)
        trial.env["PYTHONPATH"] = str(folder)
        yield
        path.unlink()

    return act


def _stuttering(word: str, still_s: float, going_s: float) -> Act:
    """Return what stops a process and lets it go on, again and again: as slow as a busy or swapping one."""

    @contextmanager
    def act(trial: Trial) -> Iterator[None]:
        pid, over = trial.ground.part(word).pid, Event()

        def stutter() -> None:
            while not over.is_set():
                try:
                    os.kill(pid, signal.SIGSTOP)
                    time.sleep(still_s)
                    os.kill(pid, signal.SIGCONT)
                except ProcessLookupError:
                    return
                over.wait(going_s)

        thread = Thread(target=stutter)
        thread.start()
        yield
        over.set()
        thread.join()

    return act


_AUTHORITY = """
import datetime
import trustme
_issue = trustme.CA.issue_cert
_now = datetime.datetime.now(datetime.timezone.utc)
_day = datetime.timedelta(days=1)
"""
_ISSUED = """
def issue(self, *names, **options):
    {condition}:
        {change}
    return _issue(self, *names, **options)
trustme.CA.issue_cert = issue
"""


def _issued(change: str, *, server: bool) -> str:
    return _AUTHORITY + _ISSUED.format(condition="if names" if server else "if not names", change=change)


_EXPIRED = "options.update(not_before=_now - 2 * _day, not_after=_now - _day)"
_NOT_YET = "options.update(not_before=_now + _day, not_after=_now + 2 * _day)"
_STRANGER = "self = trustme.CA(key_type=trustme.KeyType.ECDSA)"
_NAME = "names = ('somebody.example',)"

_REVOKED = """
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
def issue(self, *names, **options):
    leaf = _issue(self, *names, **options)
    if not names:
        authority = x509.load_pem_x509_certificate(self.cert_pem.bytes())
        client = x509.load_pem_x509_certificate(leaf.cert_chain_pems[0].bytes())
        revoked = x509.RevokedCertificateBuilder().serial_number(client.serial_number)
        crl = x509.CertificateRevocationListBuilder().issuer_name(authority.subject)
        crl = crl.last_update(_now - _day).next_update(_now + _day)
        crl = crl.add_revoked_certificate(revoked.revocation_date(_now - _day).build())
        with open({path!r}, "wb") as file:
            file.write(crl.sign(self._private_key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))
    return leaf
trustme.CA.issue_cert = issue
"""


@contextmanager
def _client_revoked(trial: Trial) -> Iterator[None]:
    """Let the broker look at a list of revoked certificates, on which the boards' is."""
    crl = trial.lab_folder / "crl.pem"
    look = f'sed -i "/^require_certificate true/a crlfile {crl}" "$2"; exec "$REAL" "$@"'
    with customized(_AUTHORITY + _REVOKED.format(path=str(crl)))(trial), shim("mosquitto", look)(trial):
        yield
    crl.unlink()


def _client(body: str) -> Act:
    return beside(CLIENT.format(root=str(ROOT), body=body), HOST)


_JUNK = """for leaf in ("publish", "echo", "echo/2", "delivery", "status"):
            junk = mqtt.publish_packet("hil/020000770101/" + leaf, b"\\x00\\xff{not json" * 50, retain=True)
            mqtt.connect(host, 1883, "junk", 2.0).sendall(junk)"""
_IDLE = """held = globals().setdefault("held", [])
        held += [socket.create_connection((host, 1883)) for _ in range(40)]"""


@contextmanager
def _same_id(trial: Trial) -> Iterator[None]:
    """Connect with the board's own client id, again and again: the broker throws the board out each time."""
    log = next((trial.ground.lab.out / "latest").glob("broker/*.log"))
    words = [line.split(" as ")[1].split()[0] for line in log.read_text().splitlines() if " as hil" in line]
    with _client(f"mqtt.connect(host, 1883, {(words or ['hil'])[-1]!r}, 2.0)")(trial):
        yield


# a service manager's work: started again whenever it has ended; it ends with the run's own signal
_AGAIN = (
    "over=; trap 'over=yes; kill $child' TERM INT; "
    'while [ -z "$over" ]; do sleep 0.02; setpriv --pdeathsig KILL "$REAL" "$@" & child=$!; wait $child; done'
)


def _saves_to(folder: Path, *settings: str) -> str:
    """Return the command that lets the broker save to a folder, with further settings."""
    lines = ("persistence true", f"persistence_location {folder}/", "autosave_interval 1", *settings)
    known = "\\n".join(lines)
    return f'sed -i "s|^persistence false|{known}|" "$2"'


def _started_again(*, saves: bool) -> Act:
    """Return what kills the broker while it measures, and starts it again at once, with what it knew or
    without."""

    @contextmanager
    def act(trial: Trial) -> Iterator[None]:
        folder = trial.lab_folder / "saved"
        folder.mkdir()
        edit = _saves_to(folder) if saves else ":"
        with shim("mosquitto", f"{edit}; {_AGAIN}")(trial):
            trial.once(
                MOMENTS["measuring"], lambda: os.kill(trial.ground.part("mosquitto").pid, signal.SIGKILL)
            )
            yield
        shutil.rmtree(folder)

    return act


def _saving(before: str) -> Act:
    """Return what lets the broker save each change, to the folder $SAVED; ``before`` is run before it.

    Somebody else's retained messages change it five times a second. Its log has to tell that it saves; where
    it cannot, mosquitto 2.0.11 says nothing.
    """

    @contextmanager
    def act(trial: Trial) -> Iterator[None]:
        folder = trial.lab_folder / "saved"
        folder.mkdir()
        edit = f"SAVED={folder}; {_saves_to(folder, 'autosave_on_changes true')}"
        with shim("mosquitto", f'{edit}; {before} exec "$REAL" "$@"')(trial), _client(_JUNK)(trial):
            yield
        shutil.rmtree(folder)
        log = (trial.ground.lab.out / "latest" / "broker" / "mosquitto.log").read_text(errors="replace")
        trial.found += [] if "Saving in-memory database" in log else ["the broker has saved nothing"]

    return act


_FULL_DISK = (
    'exec unshare --mount sh -c \'mount -t tmpfs -o size=8k chaos "$0" && '
    '{ head -c 9000 /dev/zero >"$0/ballast" 2>/dev/null; exec "$@"; }\' "$SAVED" "$REAL" "$@"; '
)


@contextmanager
def _slow_disk(trial: Trial) -> Iterator[None]:
    """Let each change that the broker saves take half a second."""
    variables = f"LD_PRELOAD={build_library('slow_disk')} HIL_SLOW_DISK_FOLDER=$SAVED"
    variables += " HIL_SLOW_DISK_RATE=100000000 HIL_SLOW_DISK_LATENCY_US=250000"
    with _saving(f"export {variables};")(trial):
        yield


def _limited(setting: str) -> Act:
    return shim("mosquitto", f'sed -i "s/^{setting} .*/{setting} 1/" "$2"; exec "$REAL" "$@"')


_ANOTHER_ADDRESS = (
    """exec "$REAL" $(printf '%s ' "$@" | sed 's/\\(host-record=[^,]*,\\)[0-9.]*/\\110.77.0.99/')"""
)


def _fault(
    name: str, act: Act, moment: Moment, *owners: Owner, says: str = "", suite: str = "quick"
) -> Fault:
    return Fault("broker", name, act, moment, owners, says=says, suite=suite)


_TLS = "first"  # mtls
_AWAY = "broker (ended its connections|gave no answer)"
_IPERF = "nightly and role=client"
_HTTP = "nightly and resolve=address"
_NAMED = "nightly and resolve=name"
FAULTS: Sequence[Fault] = (
    _fault("killed while booting", signalled("mosquitto", signal.SIGKILL), "booting", "rig", says="broker"),
    _fault(
        "killed while measuring", signalled("mosquitto", signal.SIGKILL), "measuring", "rig", says="broker"
    ),
    _fault(
        "ended in order while measuring",
        signalled("mosquitto", signal.SIGTERM),
        "measuring",
        "rig",
        says="broker",
    ),
    *(
        _fault(
            f"started again, knows {what}",
            _started_again(saves=saves),
            "before",
            "rig",
            says=_AWAY,
            suite="pr",
        )
        for what, saves in (("nothing", False), ("what it knew", True))
    ),
    _fault("told to read its file again", signalled("mosquitto", signal.SIGHUP), "measuring", "nobody"),
    _fault("frozen for 0.3 s", stopped("mosquitto", 0.3), "measuring", "nobody", "undecided", "rig"),
    _fault("frozen for 3 s", stopped("mosquitto", 3.0), "measuring", "rig", says="broker"),
    _fault("frozen for 10 s", stopped("mosquitto", 10.0), "measuring", "rig", says="broker"),
    _fault("frozen for good", stopped("mosquitto", None), "measuring", "rig", says="broker"),
    _fault("frozen half of the time", _stuttering("mosquitto", 0.2, 0.2), "measuring", "rig", "undecided"),
    _fault(
        "its watch killed",
        signalled("hil.network.broker_watch", signal.SIGKILL),
        "measuring",
        "rig",
        says="a standstill of the broker would have gone unnoticed",
    ),
    _fault(
        "ends at its start",
        shim("mosquitto", "echo 'Error: no.' >&2; exit 1"),
        "before",
        "rig",
        says="broker",
    ),
    _fault("hangs at its start", shim("mosquitto", "exec sleep 300"), "before", "rig", says="broker"),
    _fault(
        "takes one connection",
        shim("mosquitto", 'sed -i "/^listener/a max_connections 1" "$2"; exec "$REAL" "$@"'),
        "before",
        "rig",
    ),
    _fault(
        "has no memory for its start",
        shim("mosquitto", 'echo "memory_limit 40000" >>"$2"; exec "$REAL" "$@"'),
        "before",
        "rig",
        says="broker",
    ),
    _fault(
        "keys that it cannot read",
        shim("mosquitto", 'sed -i "s/^keyfile.*/keyfile \\/nowhere/" "$2"; exec "$REAL" "$@"'),
        "before",
        "rig",
        says="broker",
    ),
    *(
        _fault(
            f"certificate {name}",
            customized(_issued(change, server=True)),
            "before",
            "rig",
            says=f"TLS failed: .*{says}",
            suite=_TLS,
        )
        for name, change, says in (
            ("of another CA", _STRANGER, "signed by another CA"),
            ("expired", _EXPIRED, "not valid at this time"),
            ("not yet valid", _NOT_YET, "not valid at this time"),
            ("of another host", _NAME, "made out to another host"),
        )
    ),
    *(
        _fault(f"client {name}", act, "before", "rig", says="the other side refuses", suite=_TLS)
        for name, act in (
            ("of another CA", customized(_issued(_STRANGER, server=False))),
            ("expired", customized(_issued(_EXPIRED, server=False))),
            ("revoked", _client_revoked),
        )
    ),
    _fault("retained junk on the board's topics", _client(_JUNK), "booting", "nobody", suite="zero"),
    _fault("a second client with the board's id", _same_id, "measuring", "rig", "undecided"),
    _fault("200 idle connections", _client(_IDLE), "measuring", "nobody", "undecided"),
    _fault("half-open connections", beside(HALF_OPEN, HOST), "booting", "nobody"),
    _fault("takes its time for each connection", answered("1883", SLOW), "booting", "nobody", "undecided"),
    _fault("its port is taken", beside(IN_THE_WAY, HOST), "before", "nobody", "rig"),
    _fault("saves to a disk that is full", _saving(_FULL_DISK), "before", "nobody"),
    _fault("saves to a disk that is slow", _slow_disk, "before", "rig", says="broker gave no answer"),
    _fault("queues one message", _limited("max_queued_messages"), "before", "nobody"),
    _fault("lets one message be under way", _limited("max_inflight_messages"), "before", "nobody"),
    _fault("iperf is missing", shim("iperf", "exit 127"), "before", "rig", says="iperf", suite=_IPERF),
    _fault(
        "iperf is another one",
        shim("iperf", "echo 'iperf 3.12'"),
        "before",
        "rig",
        says="iperf",
        suite=_IPERF,
    ),
    _fault(
        "iperf killed", signalled("iperf -s", signal.SIGKILL), "measuring", "rig", says="iperf", suite=_IPERF
    ),
    _fault(
        "iperf frozen for 2 s",
        stopped("iperf -s", 2.0),
        "measuring",
        "rig",
        says="iperf stood still for",
        suite=_IPERF,
    ),
    _fault(
        "HTTP peer killed",
        signalled("echo_server", signal.SIGKILL),
        "measuring",
        "rig",
        says="HTTP|echo",
        suite=_HTTP,
    ),
    _fault(
        "HTTP peer frozen for 2 s",
        stopped("echo_server", 2.0),
        "measuring",
        "rig",
        says="echo server .* stood still for",
        suite=_HTTP,
    ),
    _fault("name server killed", signalled("dnsmasq", signal.SIGKILL), "measuring", "rig", suite=_NAMED),
    _fault(
        "name server frozen for 2 s",
        stopped("dnsmasq", 2.0),
        "measuring",
        "rig",
        says="name server stood still for",
        suite=_NAMED,
    ),
    *(
        _fault(
            f"HTTP peer {words}",
            answered("{ 8080, 8443 }", program, ("prerouting", "output")),
            "measuring",
            "rig",
            says=says,
            suite=_HTTP,
        )
        for words, program, says in (
            ("answers with garbage", GARBAGE, "BadStatusLine|TLS failed|is not HTTP"),
            ("answers nothing", NOTHING, "timed out|no answer in time"),
            ("closes each connection", GOES, "Remote|reset|TLS failed|was closed before"),
        )
    ),
    _fault(
        "name server tells another address", shim("dnsmasq", _ANOTHER_ADDRESS), "before", "rig", suite=_NAMED
    ),
    _fault("requester killed", signalled("requester", signal.SIGKILL), "measuring", "rig", suite=_HTTP),
)

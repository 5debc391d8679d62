# SPDX-License-Identifier: Apache-2.0
"""A router set up over a real SSH server, and given back as it was; uci, wifi and iw there are stand-ins."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from hil.base.errors import ConfigError, RigError
from hil.boards.rack.access_point import AccessPoint, Radio, Router
from hil.network import openwrt
from hil.network.openwrt import OpenWrt, check_openwrt
from hil.network.process import SYSTEM_FOLDERS, LocalSpawner
from tests.lab import wait_for
from tests.network import openwrt_router

SSHD = shutil.which("sshd") or shutil.which("sshd", path=SYSTEM_FOLDERS)
PSK = "it's 'quoted' \\ too"
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(SSHD is None, reason="there is no sshd (sudo apt-get install openssh-server)"),
    pytest.mark.skipif(
        Path(pwd.getpwuid(os.getuid()).pw_shell).name in ("nologin", "false"),
        reason="this user has no shell, which sshd starts",
    ),
]


@dataclass
class Server:
    """The router: ``folder`` has its state, ``settings`` reach it."""

    folder: Path
    settings: AccessPoint

    def has(self, name: str) -> dict[str, str]:
        return openwrt_router.config((self.folder / name).read_text())


def config_of(folder: Path, port: int) -> str:
    path = f"{folder / 'bin'}:{os.environ['PATH']}"
    return "\n".join(
        (
            f"Port {port}",
            "ListenAddress 127.0.0.1",
            f"HostKey {folder / 'host_key'}",
            f"AuthorizedKeysFile {folder / 'key.pub'}",
            "StrictModes no",
            "UsePAM no",
            "PermitRootLogin prohibit-password",
            "PidFile none",
            f"SetEnv PATH={path} ROUTER={folder}",
            "",
        )
    )


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("router")
    (folder / "bin").mkdir()
    for name in ("uci", "wifi", "iw"):
        program = folder / "bin" / name
        program.write_text(f"#!{sys.executable}\n{Path(openwrt_router.__file__).read_text()}")
        program.chmod(0o755)
    for name in ("host_key", "key"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / name], check=True)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    (folder / "sshd_config").write_text(config_of(folder, port))
    if os.geteuid() == 0:
        Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)  # where sshd, as root, locks itself in
    assert SSHD
    log = folder / "sshd.log"
    server = LocalSpawner().spawn([SSHD, "-D", "-e", "-f", str(folder / "sshd_config")], log_path=log)
    try:
        wait_for(lambda: log.exists() and "Server listening" in log.read_text(), "sshd")
        router = Router(
            "127.0.0.1",
            pwd.getpwuid(os.getuid()).pw_name,
            port,
            str(folder / "key"),
            str(folder / "known_hosts"),
        )
        radio = Radio("CH", 6, 40, power_dbm=9, dtim_period=3)
        yield Server(
            folder, AccessPoint("openwrt", ssid="hil lab", radio=radio, router=router, timeout_s=60.0)
        )
    finally:
        server.kill()
        server.wait(10)


@pytest.fixture
def server(running: Server, monkeypatch: pytest.MonkeyPatch) -> Server:
    """The router as its owner has it."""
    monkeypatch.setattr(openwrt, "SAVED", str(running.folder / "before"))
    monkeypatch.setattr(
        openwrt, "_RESTORE", openwrt._RESTORE.replace("/etc/hil-wireless.before", openwrt.SAVED)
    )
    for name in ("STOP_TIMEOUT_S", "LOOK_TIMEOUT_S", "STEP_TIMEOUT_S"):
        monkeypatch.setattr(openwrt, name, 120.0)  # of a busy host
    for name in ("before", "changed", "reloads"):
        (running.folder / name).unlink(missing_ok=True)
    for name in ("committed", "on-air"):
        (running.folder / name).write_text(openwrt_router.CONFIG)
    return running


def start(server: Server, secrets: Path, **radio: object) -> OpenWrt:
    assert server.settings.radio
    settings = replace(server.settings, radio=replace(server.settings.radio, **radio))  # type: ignore[arg-type]
    return OpenWrt.start(settings, PSK, LocalSpawner(), secrets)


def test_a_router_is_set_up_and_given_back(server: Server, tmp_path: Path) -> None:
    """On the air is what the rack file says, passwords with quotes too; afterwards all is as it was."""
    router = start(server, tmp_path)
    on_air = server.has("on-air")
    radio = {key.rpartition(".")[2]: value for key, value in on_air.items() if "radio0." in key}
    assert (
        radio
        | {
            "channel": "6",
            "htmode": "HT40",
            "txpower": "9",
            "country": "CH",
            "disabled": "0",
            "dtim_period": "3",
            "ssid": "hil lab",
            "encryption": "psk2",
            "key": PSK,
        }
        == radio
    )
    look = router.look()
    assert (look.info["channel"], look.info["width_mhz"], look.info["power_dbm"]) == (6, 40, 9.0)
    assert look.stations["24:0a:c4:00:00:01"]["rssi_dbm"] == -48
    assert "a run left its own settings there" in check_openwrt(server.settings, tmp_path).sentence
    router.stop()
    assert server.has("on-air") == server.has("committed") == openwrt_router.config(openwrt_router.CONFIG)
    assert not Path(openwrt.SAVED).exists()
    assert (
        check_openwrt(server.settings, tmp_path).sentence == "its router answers, and has radio and network"
    )
    assert [path.stat().st_mode & 0o077 for path in tmp_path.glob("openwrt.*")] == [0, 0]


def test_what_a_dead_run_left_is_not_taken_for_the_routers_own(server: Server, tmp_path: Path) -> None:
    """A run that did not give the router back is followed by one that puts back what was before both."""
    start(server, tmp_path, channel=11)
    start(server, tmp_path).stop()
    assert server.has("on-air") == openwrt_router.config(openwrt_router.CONFIG)


def test_a_router_that_is_as_it_should_be_is_left_alone(server: Server, tmp_path: Path) -> None:
    """Nothing is written or reloaded where nothing differs."""
    first = start(server, tmp_path)
    shutil.copy(server.folder / "committed", server.folder / "kept")
    first.stop()
    for name in ("committed", "on-air"):
        shutil.copy(server.folder / "kept", server.folder / name)
    (server.folder / "reloads").unlink()
    start(server, tmp_path).stop()
    assert not (server.folder / "reloads").exists()


def test_what_the_router_cannot_do_is_said(server: Server, tmp_path: Path) -> None:
    """A channel that its country forbids, a section or band that it has not, a password of another: each one
    sentence; the router is as it was."""
    slow = replace(server.settings, timeout_s=3.0)
    with pytest.raises(RigError, match=r"told, channel 13, .*: phy0-ap0 has channel none") as caught:
        start(replace(server, settings=slow), tmp_path, country="US", channel=13, width_mhz=20)
    assert "logread" in caught.value.next_step
    router = server.settings.router
    assert router
    for wrong, sentence in (
        (replace(router, radio="radio7"), "has no wifi-device 'radio7'; it has radio0, radio1"),
        (replace(router, radio="radio1"), "radio1 is of the band 5g, and channel 6 is not"),
    ):
        other = replace(server, settings=replace(server.settings, router=wrong))
        with pytest.raises(ConfigError, match=sentence):
            start(other, tmp_path)
    strange = replace(router, identity_file=str(server.folder / "host_key"))
    with pytest.raises(RigError, match=r"answers: .*Permission denied") as caught:
        start(replace(server, settings=replace(server.settings, router=strange)), tmp_path)
    assert "identity_file" in caught.value.next_step
    assert server.has("on-air") == openwrt_router.config(openwrt_router.CONFIG)
    nobody = replace(router, port=1)
    found = check_openwrt(replace(server.settings, router=nobody), tmp_path)
    assert not found.ok
    assert "Connection refused" in found.sentence

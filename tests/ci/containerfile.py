# SPDX-License-Identifier: Apache-2.0
"""A Containerfile's steps without a container engine: in a root of their own, laid over this machine's.

The base image is this machine, of the same distribution or near it; nothing of it is changed. What is done is
what an engine does with the instructions: COPY, RUN, ENV, USER, WORKDIR, ENTRYPOINT.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from collections.abc import Sequence
from pathlib import Path

DEADLINE_S = 300.0
# mounts are the namespace's, and end with it; the root is written to a tmpfs, as overlays do not stack
_MOUNTS = """\
set -eu
mount --make-rprivate /
mount -t tmpfs -o size=2g tmpfs "$ROOM"
mkdir "$ROOM/upper" "$ROOM/work" "$ROOM/root"
mount -t overlay overlay -o "lowerdir=/,upperdir=$ROOM/upper,workdir=$ROOM/work" "$ROOM/root"
mount -t proc proc "$ROOM/root/proc"
mount --rbind /dev "$ROOM/root/dev"
# users as in an image: those of the system alone
for file in passwd group; do awk -F: '$3 < 1000 || $3 == 65534' "/etc/$file" >"$ROOM/$file"; done
for file in passwd group; do cp "$ROOM/$file" "$ROOM/root/etc/$file"; done
inside() { chroot "$ROOM/root" env -i HOME=/root PATH="$path" /bin/sh -euc "$1"; }
path=$PATH
"""


def instructions(path: Path) -> list[tuple[str, str]]:
    """Return the instructions of a Containerfile with arguments, without comments and continuations."""
    lines = [line for line in path.read_text().splitlines() if line.strip() and not line.startswith("#")]
    joined = "\n".join(lines).replace("\\\n", " ")
    return [(line.split(None, 1)[0], line.split(None, 1)[1]) for line in joined.splitlines()]


def as_root(script: str, room: Path) -> subprocess.CompletedProcess[str]:
    """Run a shell script in a mount namespace of its own, through sudo where we are not root."""
    prefix = [] if os.geteuid() == 0 else ["sudo", "-n"]
    argv = [*prefix, "env", f"ROOM={room}", "unshare", "--mount", "sh", "-c", script]
    return subprocess.run(
        argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=DEADLINE_S, check=False
    )


def build_and_run(
    file: Path, context: Path, room: Path, commands: Sequence[str], *, prepared: str = ""
) -> subprocess.CompletedProcess[str]:
    """Do the steps of ``file`` with ``context``, then run ``commands`` as its user, in its folder.

    ``prepared`` is shell that runs before, with the root in $ROOM/root; "%" in a command is the entry point.
    """
    script = [_MOUNTS, prepared]
    user, folder, entry = "0", "/", ""
    for word, text in instructions(file):
        if word in ("ARG", "FROM"):
            continue
        if word == "COPY":
            *sources, to = text.split()
            many = to.endswith("/")
            target = f'"$ROOM/root{to}"'
            script.append(f"mkdir -p {target if many else f'$(dirname {target})'}")
            script.append(f"(cd {shlex.quote(str(context))} && cp {' '.join(sources)} {target})")
        elif word == "RUN":
            script.append(f"inside {shlex.quote(text)}")
        elif word == "ENV":
            name, value = text.split("=", 1)
            assert name == "PATH", name
            script.append(f"path={value.replace('$PATH', '$path')}")
        elif word == "USER":
            user = text
        elif word == "WORKDIR":
            folder = text
        elif word == "ENTRYPOINT":
            entry = shlex.join(re.findall(r'"([^"]*)"', text))
        else:
            raise AssertionError(f"{file.name}: no engine of ours knows {word}")
    drop = f"exec setpriv --reuid {user} --regid {user} --clear-groups"
    for command in commands:
        line = f"cd {folder} && HOME=/tmp {drop} {command.replace('%', entry)}"
        script.append(f"inside {shlex.quote(line)}")
    return as_root("\n".join(script), room)

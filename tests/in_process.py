# SPDX-License-Identifier: Apache-2.0
"""The `hil` command in the test's own process, where no promise of a program's start or end is at stake."""

from __future__ import annotations

import contextlib
import io
import os
from collections.abc import Mapping
from pathlib import Path
from subprocess import CompletedProcess
from unittest import mock

import pytest

from hil.cli.app import run_command
from tests.lab import ROOT, own_environment


def hil(*words: object, env: Mapping[str, str] | None = None, cwd: Path = ROOT) -> CompletedProcess[str]:
    """Run the command in ``cwd``; return its status, and stdout and stderr together.

    ``env`` is the whole environment. A command that would go on as another program fails the test.
    """
    said, argv = io.StringIO(), list(map(str, words))
    with (
        contextlib.chdir(cwd),
        mock.patch.dict(os.environ, own_environment() if env is None else env, clear=True),
        mock.patch.object(os, "execve", _goes_on),
        contextlib.redirect_stdout(said),
        contextlib.redirect_stderr(said),
    ):
        status = run_command(argv)
    return CompletedProcess(argv, status, said.getvalue())


def _goes_on(_program: str, argv: list[str], _env: Mapping[str, str]) -> None:
    pytest.fail(f"the command was not refused, and goes on as {argv}")

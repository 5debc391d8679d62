# SPDX-License-Identifier: Apache-2.0
"""`publish` on ESP-IDF's linux target, run under pytest-embedded."""

from __future__ import annotations

import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

from hil.base.errors import ConfigError
from hil.base.paths import PROJECT_ROOT
from hil.boards.firmware.revision import run_step

HERE = Path(__file__).resolve().parent
TARGET = "linux"


def publish(build_folder: Path, out: Path) -> tuple[int, dict[str, str]]:
    """Run publish_on_linux.py; return how many of its cases ran and which failed, with their words.

    Raises ConfigError where it came to no results.
    """
    junit = out / "junit.xml"
    junit.unlink(missing_ok=True)
    argv = [sys.executable, "-m", "pytest", "-c", str(HERE / "pytest.ini"), "--rootdir", str(HERE)]
    argv += ["--confcutdir", str(HERE), "--embedded-services", "idf", "--target", TARGET]
    argv += ["--build-dir", str(build_folder), "--app-path", str(build_folder)]
    argv += ["--root-logdir", str(out / "logs"), "--junitxml", str(junit), str(HERE / "publish_on_linux.py")]
    log = out / "pytest.log"
    try:
        run_step(argv, log=log, fresh=True, cwd=PROJECT_ROOT, env={"PYTHONPATH": str(PROJECT_ROOT)})
    except ConfigError:
        if not junit.is_file() or not read_junit(junit)[1]:
            raise
    return read_junit(junit)


def read_junit(path: Path) -> tuple[int, dict[str, str]]:
    """Return the number of cases and, of those that did not pass, what they said."""
    cases = list(ElementTree.parse(path).iter("testcase"))  # noqa: S314 - written by the pytest just run
    failed = {
        case.get("name", "?"): (problem.get("message") or problem.tag).splitlines()[0]
        for case in cases
        for problem in case
        if problem.tag in {"failure", "error", "skipped"}
    }
    return len(cases), failed

# SPDX-License-Identifier: Apache-2.0
"""Exit 1 is a regression or a fault of the firmware, and nothing else: how the harness itself fails."""

from __future__ import annotations

import errno
import os
import re
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from hil.base.errors import ExitCode
from hil.fixtures.__main__ import main as run_pytest
from tests.in_process import hil
from tests.lab import ROOT, Lab, make_lab, run

MIB = 1 << 20


@pytest.fixture
def files(tmp_path: Path) -> Lab:
    """A lab that is never started."""
    return make_lab(tmp_path, 1)


@pytest.mark.slow
@pytest.mark.parametrize("stream", ["2>&-", "<&- >&- 2>&-"])
def test_a_closed_stream_changes_no_status(files: Lab, stream: str) -> None:
    """A wrong suite is exit 2 whichever of its streams the caller closed."""
    line = f'exec "$@" {stream}'
    done = subprocess.run(
        ["bash", "-c", line, "bash", *files.command("--suite", "quik")],
        cwd=ROOT, env=files.env, check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    assert done.returncode == ExitCode.CONFIG


def limited(files: Lab, what: int, soft: int, hard: int) -> subprocess.CompletedProcess[str]:
    """Run a suite that is not there under a limit of the system's."""
    return subprocess.run(
        files.command("--suite", "quik"), cwd=ROOT, env=files.env, capture_output=True,
        text=True, check=False, preexec_fn=lambda: resource.setrlimit(what, (soft, hard)),
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("limit_mib", [80, 300])
def test_too_little_memory_is_the_rigs_fault(files: Lab, limit_mib: int) -> None:
    """Exit 3 and a sentence, no traceback, however early: NumPy's libraries would exit with 1."""
    done = limited(files, resource.RLIMIT_AS, limit_mib * MIB, limit_mib * MIB)
    assert done.returncode == ExitCode.RIG, done.stderr
    assert "hil: " in done.stderr
    assert "memory" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.slow
def test_too_few_descriptors_are_the_rigs_fault(files: Lab) -> None:
    """Exit 3 before anything is started; where only the soft limit is low, it is raised, and it begins."""
    done = limited(files, resource.RLIMIT_NOFILE, 64, 64)
    assert done.returncode == ExitCode.RIG
    assert re.search(r"\b64 files.*ulimit -n", done.stderr)
    begun = limited(files, resource.RLIMIT_NOFILE, 64, 1024)
    assert begun.returncode == ExitCode.CONFIG  # of the suite that is not there
    assert "'quik'" in begun.stderr
    assert "did you mean 'quick'" in begun.stderr


@pytest.mark.slow
@pytest.mark.needs_root
def test_another_users_home_is_the_rigs_fault(files: Lab, tmp_path: Path) -> None:
    """Exit 3 and a sentence before anything is started; a home that is not there is no fault."""
    home, rights = tmp_path / "home", "-dac_override,-dac_read_search"
    home.mkdir(mode=0o700)
    os.chown(home, 65534, 65534)

    def run_in(home: Path) -> subprocess.CompletedProcess[str]:
        limited = ["setpriv", "--bounding-set", rights, "--inh-caps", rights, "env", f"HOME={home}"]
        return run([*limited, *files.command("--board", "b9")], env=files.env)

    done = run_in(home)
    assert (done.returncode, "Traceback" in done.stdout) == (ExitCode.RIG, False), done.stdout
    assert f"hil: HOME is {home}, " in done.stdout
    begun = run_in(tmp_path / "none")
    assert begun.returncode == ExitCode.CONFIG  # of the board that is not there
    assert re.search(r"no board 'b9'.*\bb1\b", begun.stdout)


@pytest.mark.slow
@pytest.mark.needs_root
def test_a_user_without_a_home_is_the_rigs_fault() -> None:
    """As in a container whose user nobody has written down; esptool would end with a page."""
    unknown = [sys.executable, "-c", "import os; from hil import cli; os.setuid(54321); cli.main()"]
    done = run(unknown, env={name: value for name, value in os.environ.items() if name != "HOME"})
    assert (done.returncode, "Traceback" in done.stdout) == (ExitCode.RIG, False), done.stdout
    assert "hil: user 54321 has no HOME" in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    ("into", "status", "said"), [("| true", 141, ""), ("> /dev/full", ExitCode.RIG, "no space is left")]
)
def test_who_reads_no_further_gets_no_verdict(files: Lab, into: str, status: int, said: str) -> None:
    """Exit 1 is a regression: a closed pipe ends with SIGPIPE's status, a full disk with the rig's."""
    words = [sys.executable, "-m", "hil", "plan", "--rack", str(files.rack), "--suite", "nightly"]
    line = f'"$@" {into}; exit "${{PIPESTATUS[0]}}"'
    done = subprocess.run(
        ["bash", "-c", line, "bash", *words],
        cwd=ROOT, env=files.env, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, said in done.stderr) == (status, True), done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("file", "code", "options"),
    [
        ("conftest.py", "raise MemoryError\n", []),
        ("crashing.py", "def pytest_configure():\n    raise MemoryError('none left')\n", ["-p", "crashing"]),
    ],
)
def test_a_session_that_cannot_begin_is_the_rigs_fault(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    file: str,
    code: str,
    options: list[str],
) -> None:
    """What pytest calls a usage error is not "undecided", though both have the number 4; and an exception
    that leaves pytest would end Python with 1."""
    (tmp_path / file).write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    assert run_pytest([str(tmp_path), "-c", "/dev/null", "-p", "no:cacheprovider", *options]) == ExitCode.RIG
    assert "no verdict" in capfd.readouterr().err


@pytest.mark.parametrize("number", [errno.EROFS, errno.EACCES])
def test_a_folder_that_is_not_ours_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """A read-only folder is no defect of ours: the sentence has the file and the way out."""

    def refuse(path: Path, *_more: object, **_named: object) -> None:
        raise OSError(number, os.strerror(number), str(path))

    project = "include($ENV{IDF_PATH}/tools/cmake/project.cmake)\nproject(product)\n"
    (tmp_path / "CMakeLists.txt").write_text(project)
    monkeypatch.setattr(Path, "mkdir", refuse)
    done = hil("init", cwd=tmp_path)
    assert done.returncode == ExitCode.RIG
    assert re.search(rf"^hil: {tmp_path}/\S+: {os.strerror(number)}\. Next: ", done.stdout)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        ("KeyError('none left')", "internal error: KeyError('none left'). `hil --debug …`"),
        ("MemoryError('none left')", "hil ran out of memory"),
    ],
)
def test_a_crash_within_a_session_is_one_sentence(
    files: Lab, tmp_path: Path, error: str, sentence: str
) -> None:
    """What breaks in pytest's hooks is a defect of ours, or the host's want: no traceback but the way out."""
    code = f"def pytest_collection_finish():\n    raise {error}\n"
    (tmp_path / "crashing.py").write_text(code)
    env = {**files.env, "PYTHONPATH": str(tmp_path), "PYTEST_ADDOPTS": "-p crashing"}
    done = run(files.command("--suite", "quick"), env=env)
    assert done.returncode == ExitCode.RIG
    said = [line for line in done.stdout.splitlines() if line.startswith("hil: ")]
    assert [line.startswith(f"hil: {sentence}") for line in said] == [True], done.stdout
    assert "Traceback" not in done.stdout
    assert "crashing.py" not in done.stdout

# SPDX-License-Identifier: Apache-2.0
"""pr.yml, run by act, for each kind of pull request: what changes, and what hil-verdict makes of it.

The rest of it runs elsewhere. Labels of runners, environments, and jobs that wait or are cancelled, which act
has not, by their commands against a server that behaves like GitHub's: tests/ci/test_ci_wanted.py and
test_ci_more.py. The merge queue: test_ci_plan.py. Another repository: test_measure.py. Nights, and the order
of jobs: test_workflows.py.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from ruamel.yaml import YAML

from tests.ci.act import STAND_INS, link_installed
from tests.ci.elsewhere import LOCKS, commit_all
from tests.lab import ROOT

SITE_LOCK = "reports/site/package-lock.json"


def test_a_job_installs_nothing(tmp_path: Path) -> None:
    """What is installed here serves a job whose lock files are newer, too: it must not write into it."""
    checkout, workspace = tmp_path / "checkout", tmp_path / "workspace"
    for name in (".ci/bootstrap", SITE_LOCK, "requirements-release.lock", *LOCKS):
        (checkout / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, checkout / name)
    with (checkout / "requirements.lock").open("a") as stream:
        stream.write("# newer\n")
    commit_all(checkout)
    workspace.mkdir()
    installed = link_installed(tmp_path / "installed", checkout)
    given = {"HIL_ACT_ORIGIN": f"file://{checkout}", "HIL_ACT_INSTALLED": str(installed)}
    (step,) = YAML(typ="safe").load(STAND_INS / "checkout" / "action.yml")["runs"]["steps"]
    said = ""
    for command in (step["run"], ".ci/bootstrap python", ".ci/bootstrap run"):
        done = subprocess.run(
            ["bash", "-eo", "pipefail", "-c", command],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=workspace,
            env={**os.environ, **given, "REF": "HEAD", "DEPTH": "1", "TO": "."},
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, done.stdout
        said += done.stdout
    assert said == ""

# SPDX-License-Identifier: Apache-2.0
"""The ten minutes of docs/start/adopt.md, from the wheel: what the page says is what runs."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.whole import installed
from tools.adopt import PAGE, Step, WrongPageError, desk, follow, steps, table

PIPX = """\
#!/bin/sh -e
[ "$1 $(basename "$2")" = "install $2" ] && [ -f "${{2%\\[*}}" ]
ln -s {hil} "$HOME/.local/bin/hil"
"""


def test_the_page_is_a_list_of_steps() -> None:
    """Installing, a project, its network, a probe with test and limits, a run, a comparison."""
    found = [step.path or step.words.split(" &&")[0] for step in steps()]
    assert found == [
        "pipx install 'esp_hil-0.1.0-py3-none-any.whl[report]'",
        "hil doctor",
        "cp -r examples/sensor-node ~/node",
        "hil init",
        "hil build -C .",
        "hil.toml",
        "hil/benches/reading_ack.probe.yaml",
        "hil/benches/test_reading_ack.py",
        "hil/thresholds/reading_ack.yaml",
        "hil run --suite product",
        "git add -A",
        "echo CONFIG_NODE_SLOW_PUBLISH=20000 >>sdkconfig.defaults",
        "hil compare HEAD --board v1",
    ]


@pytest.mark.parametrize(
    "line", ["false", "true # exit status 1: REGRESSED", "cd nowhere # the folder", "exit 3 # exit status 1"]
)
def test_a_page_that_says_what_is_not_so_fails(tmp_path: Path, line: str) -> None:
    """A command that ends otherwise than the page says is told with its page, heading and output."""
    with pytest.raises(WrongPageError, match=r"page\.md: 1\. Try it"):
        follow([Step(line, "page.md: 1. Try it")], tmp_path, dict(os.environ), lambda _line: None)


def test_a_block_without_its_file_is_refused(tmp_path: Path) -> None:
    """YAML of which no line above says where it belongs cannot be followed."""
    page = tmp_path / "page.md"
    page.write_text("## Ten minutes\n### 1. Write\nthis:\n\n```yaml\nschema: 1\n```\n")
    with pytest.raises(WrongPageError, match="of which file"):
        steps(page)


@pytest.mark.slow
@pytest.mark.heavy
def test_the_page_is_followed_from_the_wheel(tmp_path: Path) -> None:
    """Each step ends as it says: twelve limits kept on four boards, then the planted 20 ms are found."""
    shelf, env = desk(tmp_path)
    program = Path(env["HOME"]) / ".local" / "bin" / "pipx"
    program.write_text(PIPX.format(hil=installed.environment() / "bin" / "hil"))
    program.chmod(0o755)
    done = follow(steps(PAGE), shelf, env)
    print(table(done))
    measured, compared = (next(one.said for one in done if one.step.text.startswith(words)) for words in (
        "hil run", "hil compare",
    ))  # fmt: skip
    assert "All 12 limits kept" in measured
    assert "Reading ack p50" in compared
    assert "REGRESSED" in compared
    assert (Path(env["HOME"]) / "node" / "out" / "report" / "index.html").is_file()

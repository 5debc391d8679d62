# SPDX-License-Identifier: Apache-2.0
"""The report site as files: what is built from which runs, and what happens when it cannot be."""

from __future__ import annotations

import html
import json
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from hil.base.errors import ConfigError, HilError, RigError
from hil.cli.app import run_command
from hil.history.files import read_past
from hil.history.from_run import keep_run
from hil.model import Fault, NotRun
from hil.reports.kinds import VIRTUAL_REMARK
from hil.reports.site import build_site, generator
from hil.reports.site import runs as published
from hil.reports.site.runs import shown
from hil.store import read_judged_run
from tests.lab import descendants, wait_for
from tests.make_records import publish_record
from tests.reports.as_read import words
from tests.reports.site_runs import CASES, healthy, store_run

ROOT = Path(__file__).resolve().parents[2]
SITE = ROOT / "reports" / "site"
NAME = "20261121T101500Z-quick-0001"
Captured = pytest.CaptureFixture[str]
CI = {"url": "https://github.example/acme/fw/actions/runs/17", "head_sha": "f" * 40}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A healthy run."""
    return store_run(tmp_path_factory.mktemp("out"), NAME, healthy())


def hil(capsys: Captured, *arguments: str | Path) -> tuple[int, str, str]:
    """Run `hil report`; return its exit code and what it said on stdout and stderr."""
    code = run_command(["report", *map(str, arguments)])
    said = capsys.readouterr()
    return code, said.out, said.err


def landing(out: Path) -> str:
    """Return the words of the first page."""
    return words((out / "report" / "index.html").read_text(encoding="utf-8"))


def test_the_generator_is_pinned_and_names_no_registry() -> None:
    """Each package has a version and a hash, and none says where it was downloaded from."""
    lock = (SITE / "package-lock.json").read_text()
    packages = {name: entry for name, entry in json.loads(lock)["packages"].items() if name}
    assert packages["node_modules/allure"]["version"] == "3.18.0"
    assert [
        name for name, entry in packages.items() if not entry.get("integrity", "").startswith("sha512-")
    ] == []
    assert [name for name, entry in packages.items() if "resolved" in entry] == []
    assert "https://registry" not in lock


@pytest.mark.slow
def test_the_command_builds_the_latest_run_again(tmp_path: Path, capsys: Captured) -> None:
    """`hil report build` names the page; built twice and named thrice, both histories have the run once."""
    store_run(tmp_path, NAME, healthy())
    for runs in ([], [tmp_path / NAME, tmp_path / "latest", tmp_path / NAME]):
        told = hil(capsys, "build", "--out", tmp_path, *runs)
        assert told == (0, f"{tmp_path}/report/index.html\n", "")
    assert len(read_past(tmp_path / "history").runs) == 1
    assert len((tmp_path / "history" / "allure.jsonl").read_text().splitlines()) == 1
    assert not list(tmp_path.glob(".report-*"))


@pytest.mark.slow
def test_folders_may_be_named_relative_to_where_one_stands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`hil report build --out out --history past` is what it says, as the shell completes it."""
    monkeypatch.chdir(tmp_path)
    run = store_run(Path("out"), NAME, healthy())
    build_site(Path("out"), [read_judged_run(run)], history=Path("past"))
    assert (tmp_path / "out/report/index.html").is_file()
    assert len((tmp_path / "past/allure.jsonl").read_text().splitlines()) == 1


@pytest.mark.slow
def test_a_pull_request_leaves_the_history_as_it_is(tmp_path: Path, capsys: Captured) -> None:
    """`--no-append` reads the history and writes none; the run is on its trend page all the same."""
    nightly = store_run(tmp_path, "20261120T010000Z-nightly-0000", healthy(), trigger="nightly")
    history = tmp_path / "history"
    keep_run(read_judged_run(nightly), history)
    before = {path: path.read_bytes() for path in history.glob("*/*")}
    store_run(tmp_path, NAME, healthy(), trigger="pr", commit="b" * 40, ci=CI)
    arguments = ["--out", tmp_path / "elsewhere", "--history", history, "--no-append", tmp_path / NAME]
    code, _, error = hil(capsys, "build", *arguments)
    assert code == 0, error
    assert {path: path.read_bytes() for path in history.glob("*/*")} == before
    trend = json.loads((tmp_path / "elsewhere/report/trend/trend.json").read_text())
    assert trend["runs"]["id"] == [nightly.name, NAME]
    assert trend["runs"]["commit"][-1] == "f" * 40
    assert trend["runs"]["url"][-1] == CI["url"]


@pytest.mark.slow
def test_runs_of_several_racks_become_one_report(tmp_path: Path) -> None:
    """One page with the verdict of each, the worst first, and the tests of both."""
    names = (NAME, "20261121T101501Z-quick-0002")
    store_run(tmp_path, names[0], healthy())
    store_run(tmp_path, names[1], healthy(31.0))
    build_site(tmp_path, [read_judged_run(tmp_path / name) for name in names])
    said = landing(tmp_path)
    assert said.index("REGRESSED") < said.index("1 more run on")
    assert "8 tests" in said
    assert len((tmp_path / "history" / "allure.jsonl").read_text().splitlines()) == 1
    assert {path.name for path in (tmp_path / "report" / "runs").iterdir()} == set(names)


@pytest.mark.slow
def test_the_first_page_says_the_verdict_and_what_led_to_it(tmp_path: Path) -> None:
    """Title, verdict, each board's part, what broke, faults, cases not run, the way to the raw files."""
    entries = [
        publish_record(board="v1", overrides=CASES[1], latency_ms=31),
        Fault("", "rig", 3, "board v2 <vanished>", "v2"),
        NotRun("", "v2", "publish/qos=2", "the board was lost"),
    ]
    store_run(tmp_path, NAME, entries, commit="abcdef0" + "0" * 33, ci=CI)
    build_site(tmp_path, [read_judged_run(tmp_path / NAME)])
    said = landing(tmp_path)
    for part in (
        "rack virtual · quick · commit fffffff · virtual figures",
        "REGRESSED 1 of 3 ",
        VIRTUAL_REMARK.partition("'")[0],
        "✗ broken publish latency p95 publish/transport=tls v1 ",
        "v1 (virtual) virtual-esp32 1 1 0 0 2 1 0 0",
        "v2 – 1 0 0 1 0 0 0 0",
        "rig on v2: board v2 &lt;vanished&gt;",
        "1 case on v2: the board was lost",
        "summary.md · verdicts.json · records.jsonl · run.json · workflow run",
    ):
        assert part in said
    raw = tmp_path / "report" / "runs" / NAME
    assert (raw / "records.jsonl").read_bytes() == (tmp_path / NAME / "records.jsonl").read_bytes()


@pytest.mark.slow
def test_a_run_that_measured_nothing_has_a_report(tmp_path: Path) -> None:
    """A rig that failed at once is reported, too; its test report is empty and its trend page says so."""
    run = store_run(tmp_path, NAME, [Fault("", "rig", 3, "the access point is gone")])
    build_site(tmp_path, [read_judged_run(run)])
    assert "NO VERDICT: THE RIG FAILED" in landing(tmp_path)
    assert "No run has measured" in (tmp_path / "report/trend/index.html").read_text()


def test_two_copies_of_a_run_are_refused(tmp_path: Path, run: Path) -> None:
    """Both folders are named; nothing is built."""
    copy = shutil.copytree(run, tmp_path / "copy" / run.name)
    with pytest.raises(ConfigError, match=f"{run} and {copy} "):
        build_site(tmp_path / "out", [read_judged_run(run), read_judged_run(copy)])


@pytest.mark.slow
def test_builds_at_the_same_time_leave_one_whole_report(tmp_path: Path) -> None:
    """Both end well; the report is the one or the other run's, and both histories have both runs."""
    names = {NAME, "20261121T101501Z-quick-0002"}
    for name in names:
        store_run(tmp_path, name, healthy())
    arguments = [sys.executable, "-m", "hil", "report", "build", "--out", tmp_path]
    builds = [subprocess.Popen([*arguments, tmp_path / name], cwd=ROOT) for name in names]
    assert [build.wait(120) for build in builds] == [0, 0]
    (shown,) = (path.name for path in (tmp_path / "report" / "runs").iterdir())
    assert shown in names
    assert f"Run {shown}" in landing(tmp_path)
    assert {path.name for path in (tmp_path / "report").iterdir()} == {"index.html", "runs", "tests", "trend"}
    assert len(read_past(tmp_path / "history").runs) == 2
    assert len((tmp_path / "history" / "allure.jsonl").read_text().splitlines()) == 2
    assert not list(tmp_path.glob(".report-*"))


@pytest.mark.slow
def test_noise_in_a_sentence_does_not_cost_the_report(tmp_path: Path) -> None:
    """Bytes that some take for a line's end: the run has its report, and so has the next one after it."""
    sentence = "panic'ed (Load\x85Prohibited\u2028\u2029\x0b)"
    noise = Fault("", "firmware", 1, sentence, "v1", healthy()[0].case_id)
    for name in (NAME, "20261121T101501Z-quick-0002"):
        build_site(tmp_path, [read_judged_run(store_run(tmp_path, name, [*healthy(), noise]))])
    points = (tmp_path / "history" / "allure.jsonl").read_bytes().decode("ascii").splitlines()
    assert [json.loads(point)["runs"] for point in points] == [[NAME], ["20261121T101501Z-quick-0002"]]


@pytest.mark.slow
def test_what_is_published_tells_nothing_of_the_machine(tmp_path: Path) -> None:
    """Neither user, host and command line nor where things lie; paths are those below the checkout."""
    far = f"/home/runner/_work/fw/out/{NAME}"
    sentence = f"panic. Log: {tmp_path}/out/{NAME}/console/v1.log. See {far}/console/v1.log, {ROOT}/docs/a.md"
    entries = [*healthy(), Fault("", "firmware", 1, sentence, "v1", healthy()[0].case_id)]
    secrets = {"user": "ada", "host": "cellar-pc", "argv": [f"{ROOT}/x", "/srv/lab.yaml"]}
    firmware = {"esp32": {"sha256": "ab" * 32, "commit": "_work"}}
    ci = {**CI, "pull_request": 7}
    run = store_run(tmp_path / "out", NAME, entries, firmware=firmware, ci=ci, **secrets)
    assert "ada on `cellar-pc`" in (run / "summary.md").read_text()
    index = build_site(tmp_path / "out", [read_judged_run(run)])
    raw = index.parent / "runs" / NAME
    info = json.loads((raw / "run.json").read_text())
    assert (info["ci"], info["firmware"]) == ({"url": CI["url"]}, {"esp32": {"sha256": "ab" * 32}})
    (results,) = published.copy_results(
        tmp_path / "copy", [shown(read_judged_run(run))], published.shortener([shown(read_judged_run(run))])
    )
    files = [index, *raw.iterdir(), *results.iterdir()]
    for path in files:
        content = path.read_bytes()
        for word in (str(tmp_path), str(ROOT), "ada on", "cellar-pc", "/srv/", "_work"):
            assert word.encode() not in content, f"{word} in {path}"
    assert f"Log: out/{NAME}/console/v1.log. See " in (raw / "verdicts.json").read_text()
    assert "docs/a.md" in landing(tmp_path / "out")


@pytest.mark.slow
def test_an_interrupted_build_ends_its_generator(tmp_path: Path, run: Path) -> None:
    """SIGTERM: exit 143 and no traceback; the generator is gone, the report of yesterday is not."""
    report = tmp_path / "report" / "index.html"
    report.parent.mkdir()
    report.write_text("the report of yesterday")
    fake, started = tmp_path / "fake.mjs", tmp_path / "pid"
    fake.write_text(f"""import fs from "node:fs";
        fs.writeFileSync("{started}.new", String(process.pid)); fs.renameSync("{started}.new", "{started}");
        setInterval(() => {{}}, 1000);""")
    program = "import sys; from pathlib import Path; from hil.reports.site import generator; "
    program += f"generator.ALLURE = Path({str(fake)!r}); sys.argv[0] = 'hil'; "
    program += "from hil.cli import main; main()"
    argv = [sys.executable, "-c", program, "report", "build", "--out", tmp_path, run]
    process = subprocess.Popen(argv, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    wait_for(lambda: started.exists() or process.poll() is not None, lambda: "the generator did not start")
    generators = [one for one in descendants(process.pid) if one.pid == int(started.read_text())]
    process.send_signal(signal.SIGTERM)
    said, _ = process.communicate(timeout=30)
    assert (process.returncode, said) == (143, "")
    assert len(generators) == 1
    assert not generators[0].alive()
    assert report.read_text() == "the report of yesterday"
    assert not list(tmp_path.glob(".report-*"))


def test_a_defect_of_the_reports_is_not_the_firmwares(
    run: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exit 3 and one sentence; 1 would accuse the firmware."""
    monkeypatch.setattr("hil.reports.allure.complete_results", None)
    code, said, error = hil(capsys, "build", run)
    assert (code, said) == (3, "")
    assert re.fullmatch(r"hil: .*, TypeError: .*\n", error)


def assert_not_built(out: Path, run: Path, kind: type[HilError], *expected: str) -> None:
    """The error has these words, and the report that was there before is untouched."""
    report = out / "report" / "index.html"
    report.parent.mkdir(exist_ok=True)
    report.write_text("the report of yesterday")
    with pytest.raises(kind) as caught:
        build_site(out, [read_judged_run(run)])
    for word in expected:
        assert word in str(caught.value)
    assert report.read_text() == "the report of yesterday"
    assert not list(out.glob(".report-*"))


def test_without_a_generator_nothing_is_built(
    tmp_path: Path, run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exit 2, and the command that installs it; what a killed build left half-made is removed even so."""
    left = tmp_path / ".report-killed"
    left.mkdir()
    (left / "allurerc.json").touch()
    monkeypatch.setattr(generator, "ALLURE", tmp_path / "no-such-file.js")
    assert_not_built(tmp_path, run, ConfigError, "no-such-file.js is missing", ".ci/bootstrap run")
    assert not left.exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("program", "expected"),
    [
        ("console.log('one'); console.error('no luck'); process.exit(7)", ["ended with 7", "one / no luck"]),
        (
            'import fs from "node:fs"; fs.writeFileSync("/dev/full", "x")',
            ["No space left", "free some space"],
        ),
        ("console.error('plugin trend error')", ["page 'tests' is missing", "plugin trend error"]),
        ("setInterval(() => {}, 1000)", ["within 1 s"]),
        ("console.log(Object.keys(process.env).sort().join()); process.exit(1)", ["said: HOME,LANG,PATH"]),
    ],
    ids=["status", "full disk", "page left out", "hangs", "environment"],
)
def test_a_generator_that_fails_is_quoted(
    tmp_path: Path, run: Path, monkeypatch: pytest.MonkeyPatch, program: str, expected: list[str]
) -> None:
    """Its status and the last lines of what it said; for a full disk what to do, not where Node was. Where a
    plugin fails Allure says no more than a line and exits with 0. None is waited for for ever, and none sees
    a reporting service's token in the caller's environment.
    """
    monkeypatch.setenv("ALLURE_SERVICE_ACCESS_TOKEN", "ars1.secret")
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setattr(generator, "ALLURE", tmp_path / "fake.mjs")
    generator.ALLURE.write_text(program)
    if "setInterval" in program:
        monkeypatch.setattr(generator, "DEADLINE_S", 1.0)
    assert_not_built(tmp_path, run, RigError, *expected)


@pytest.mark.slow
def test_a_damaged_past_costs_its_part_and_not_the_report(
    tmp_path: Path, run: Path, capsys: Captured
) -> None:
    """The run does not enter the history, and stderr says which file is in the way. The report has the run's
    own figures; the file, what is wrong and the way out stand on its trend page.
    """
    damaged = tmp_path / "history" / "virtual" / f"{run.name}.json"
    damaged.parent.mkdir(parents=True)
    damaged.write_text("{\n")
    code, _, error = hil(capsys, "build", "--out", tmp_path, run)
    assert code == 0, error
    (warning,) = (line for line in error.splitlines() if line.startswith("warning: "))
    assert re.search(f"history: {damaged}: .*not JSON", warning)
    assert (tmp_path / "report" / "index.html").is_file()
    trend = (tmp_path / "report" / "trend" / "trend.json").read_text()
    told = html.unescape(trend)
    assert re.search(f": history/virtual/{NAME}.json: .*delete the file", told)
    assert str(tmp_path) not in told
    assert run.name in json.loads(trend)["runs"]["id"]
    assert damaged.read_text() == "{\n"


def test_a_damaged_past_of_the_tests_is_named(tmp_path: Path, run: Path) -> None:
    """File, line and the command that takes the line out; the earlier report stays."""
    history = tmp_path / "history" / "allure.jsonl"
    history.parent.mkdir()
    history.write_text("{\n")
    assert_not_built(tmp_path, run, ConfigError, f"{history}:1: not JSON", f"sed -i 1d {history}")


@pytest.mark.parametrize(
    "markup",
    [
        '<script async src="https://stats.example/x.js"></script>',
        "<script>\n  window.dataLayer = window.dataLayer || [];</script>",
        "<SCRIPT SRC=//stats.example/x.js></SCRIPT>",
    ],
)
def test_scripts_of_other_hosts_are_taken_out(markup: str) -> None:
    """What is the page's own stays; a policy stands before anything else."""
    own = '<html><head lang="en"><script src="app.js"></script></head><body><script>let a = 1;</script>'
    sealed = generator.seal(own + markup)
    assert sealed == own.replace('<head lang="en">', f'<head lang="en">{generator._POLICY_TAG}')
    assert list(generator.foreign_addresses(sealed)) == []


@pytest.mark.parametrize(
    "markup",
    [
        '<script src="https://stats.example/x.js">',
        '<link rel="stylesheet" href="//fonts.example/a.css">',
        '<img src="http://pixel.example/1.gif">',
        '<iframe src="https://frame.example/">',
        '<video poster="https://video.example/p.png">',
        '<svg><image href="https://image.example/i.png"/></svg>',
        '<p style="background:url(https://back.example/b.png)">',
        "<style>@import 'https://fonts.example/a.css';</style>",
    ],
)
def test_a_page_that_would_ask_another_host_is_not_published(tmp_path: Path, markup: str) -> None:
    """Page, line and address; a plain link to another host is not fetched, so it may stay."""
    page = tmp_path / "tests" / "index.html"
    page.parent.mkdir()
    page.write_text('<p>\n<a href="https://github.example/">link</a>\n<img src="data:,"><img src="own.png">')
    generator.check(tmp_path)
    page.write_text(f"<p>\n{markup}")
    with pytest.raises(RigError, match=r"tests/index\.html:2 .*\.example"):
        generator.check(tmp_path)


def test_what_cannot_be_built_is_a_sentence(tmp_path: Path, capsys: Captured) -> None:
    """No run, a run that was never judged."""
    code, _, error = hil(capsys, "build", "--out", tmp_path)
    assert code == 2
    assert "not a run directory" in error
    unjudged = store_run(tmp_path, NAME, healthy())
    (unjudged / "verdicts.json").unlink()
    code, _, error = hil(capsys, "build", "--out", tmp_path)
    assert code == 2
    assert f"hil gate {unjudged}" in error

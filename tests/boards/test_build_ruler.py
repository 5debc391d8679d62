# SPDX-License-Identifier: Apache-2.0
"""Builds of one commit's product with another's ruler: what is mixed, what is told, what falls back."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from pathlib import Path

import jsonschema
import pytest

from hil.base.errors import ConfigError
from hil.boards.firmware.build import build
from hil.boards.firmware.build_folder import Image
from hil.boards.firmware.bundle import DIGESTS, Digests, read_digests, verify, write_bundle
from hil.boards.firmware.revision import SourceState, find_revision
from hil.boards.firmware.ruler import COMPONENTS, RULER_LOG, find_ruler, is_ruler
from hil.boards.firmware.selection import compare_bundles, find_firmware
from hil.cli.app import run_command
from hil.model import Ruler
from tests.boards.idf_stand_in import put_idf
from tests.boards.revision_rig import commit_all, git
from tests.lab import ROOT

TARGET = "esp32"
BENCH, OLD_BENCH, NEW_BENCH = (f"components/benches/{stem}.c" for stem in ("publish", "gone", "new"))
PRODUCT, NEW_HEADER = "components/link/link.c", "components/link/include/link/new.h"

# Builds as idf.py would: a source that includes a header of link/ which is not there stops it. What was built
# is in the image, by the digest of all sources.
IDF_PY = """
sources = {str(path): path.read_text() for path in sorted(Path().rglob("*.[ch]"))}
for path, text in sources.items():
    for header in re.findall('#include "(link/.*)"', text):
        if not Path("components/link/include", header).exists():
            print(f"{path}:1:10: fatal error: {header}: No such file or directory")
            print("ninja: build stopped: subcommand failed.")
            sys.exit(1)
version = hashlib.sha256(json.dumps(sources).encode()).hexdigest()[:20]
make_image(folder, chip="esp32", version=version)
(folder / "sources.json").write_text(json.dumps(sources))
"""


@dataclass
class History:
    """A repository whose commits hold a firmware of benches and a link; ``said`` is what builds said."""

    path: Path
    said: list[str] = field(default_factory=list)

    def commit(self, **texts: str | None) -> str:
        """Commit sources: by the name of a constant above its text, None removes it."""
        for name, text in texts.items():
            path = self.path / "firmware" / globals()[name]
            path.parent.mkdir(parents=True, exist_ok=True)
            path.unlink(missing_ok=True)
            if text is not None:
                path.write_text(text)
        return commit_all(self.path)

    def build(self, at: str, ruler_of: str = "") -> tuple[dict[str, str], Path]:
        """Build into a bundle; return the sources that were built, without firmware/, and the bundle."""
        bundle = self.path.parent / f"{at[:8]}-{ruler_of[:8]}"
        state = SourceState(find_revision(self.path, at).commit, dirty=False)
        built: dict[str, str] = {}

        def publish(folder: Path, ruler: Ruler | None) -> Path:
            built.update(json.loads((folder / "sources.json").read_text()))
            whole = SourceState(state.commit, dirty=False, ruler=ruler)
            return write_bundle(folder, Image(TARGET), bundle, whole)

        build(
            TARGET,
            say=self.said.append,
            build_root=self.path.parent / "out",
            revision=find_revision(self.path, at),
            ruler=find_ruler(self.path, ruler_of) if ruler_of else None,
            publish=publish,
        )
        return built, bundle


@pytest.fixture
def history(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> History:
    """A repository in whose builds a stand-in takes the place of ESP-IDF."""
    put_idf(IDF_PY, tmp_path, monkeypatch)
    path = tmp_path / "repository"
    (path / "firmware").mkdir(parents=True)
    (path / "firmware" / "CMakeLists.txt").write_text("project(hil-firmware)\n")
    git(path, "init", "--quiet")
    monkeypatch.setattr("hil.boards.firmware.build.PROJECT_ROOT", path)
    monkeypatch.setattr("hil.cli.build.PROJECT_ROOT", path)
    return History(path)


def digests(bundle: Path) -> Digests:
    return read_digests(bundle / TARGET)


def test_the_ruler_is_what_the_ruler_hash_covers() -> None:
    """Each component of bench_table.cmake's hashes is moved, and the benches themselves; nothing else is."""
    text = (ROOT / "firmware/components/benches/bench_table.cmake").read_text()
    shared = re.search(r"foreach\(component (agent .*)\)", text)
    own = re.search(r"set\(ruler_components (.*)\)", text)
    assert shared
    assert own
    assert {*shared[1].split(), *own[1].split(), "benches"} == set(COMPONENTS)
    components = ROOT / "firmware" / "components"
    assert {path.name for path in components.iterdir()} - set(COMPONENTS) == {"link"}


@pytest.mark.parametrize(
    ("path", "measures"),
    [
        ("firmware/components/benches/publish.c", True),
        ("firmware/components/agent/port/esp/console.c", True),
        ("firmware/components/rtos", False),
        ("firmware/components/link/esp/link.c", False),
        ("firmware/main/app_main.c", False),
        ("firmware/host/idf/mqtt/messages.c", False),
        ("tests/firmware/components/benches/publish.c", False),
    ],
)
def test_which_paths_are_ruler(path: str, measures: bool) -> None:
    """Files of the components above; the product is the rest of firmware/."""
    assert is_ruler(path) is measures


@pytest.mark.slow
def test_the_product_of_one_commit_is_built_with_the_benches_of_another(
    history: History, capsys: pytest.CaptureFixture[str]
) -> None:
    """An edited bench is the head's, a new one is there, a removed one is not; the product is the base's. Of
    neither's sources anything is left, and the working tree is as it was."""
    base = history.commit(BENCH="old bench", OLD_BENCH="gone", PRODUCT="old product")
    head = history.commit(BENCH="new bench", OLD_BENCH=None, NEW_BENCH="new", PRODUCT="new product")
    built, bundle = history.build(base, head)
    assert built == {BENCH: "new bench", NEW_BENCH: "new", PRODUCT: "old product"}
    ruler = Ruler(head, dirty=False, moved=("benches",))
    assert (digests(bundle).commit, digests(bundle).ruler) == (base, ruler)
    assert not list((history.path.parent / "out" / "at").glob("*-sources"))
    assert git(history.path, "status", "--porcelain") == ""
    assert find_firmware(bundle, Image(TARGET)).origin["ruler"] == ruler
    assert run_command(["firmware", "verify", str(bundle)]) == 0
    assert f"commit {base[:12]}, its benches of {head[:12]}, built by" in capsys.readouterr().out
    (compared,) = compare_bundles(bundle, history.build(base)[1])
    assert compared.outcome == "different"


@pytest.mark.slow
def test_a_change_of_a_bench_alone_gives_the_base_the_image_of_the_head(history: History) -> None:
    """Nothing of the product has changed, and the same bytes say so. --ruler-of . takes what is not committed
    too, and the bundle says that there are such changes."""
    base = history.commit(BENCH="old bench", PRODUCT="product")
    head = history.commit(BENCH="new bench")
    (compared,) = compare_bundles(history.build(head)[1], history.build(base, head)[1])
    assert compared.outcome == "identical"
    (history.path / "firmware" / BENCH).write_text("not committed")
    built, bundle = history.build(base, ".")
    assert built[BENCH] == "not committed"
    assert digests(bundle).ruler == Ruler(head, dirty=True, moved=("benches",))
    assert (history.path / "firmware" / BENCH).read_text() == "not committed"


@pytest.mark.slow
def test_benches_that_do_not_build_with_the_base_leave_it_its_own(
    history: History, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit 0, the base as it was, the reason in its digests, what the compiler said beside them."""
    base = history.commit(BENCH="old bench", PRODUCT="old product")
    head = history.commit(BENCH='#include "link/new.h"', PRODUCT="new product", NEW_HEADER="new")
    own, without = history.build(base)
    built, bundle = history.build(base, head)
    assert built == own
    ruler = digests(bundle).ruler
    assert ruler
    assert (ruler.commit, ruler.moved) == (head, ())
    assert f"{BENCH}:1:10: " in ruler.reason
    files = dict(digests(bundle).files)
    assert files.pop(RULER_LOG)
    assert files == digests(without).files
    assert "ninja: build stopped" in (bundle / TARGET / RULER_LOG).read_text()
    assert verify(bundle / TARGET)
    assert any(head in said and f"{base}, which keeps its own" in said for said in history.said)
    assert run_command(["firmware", "verify", str(bundle)]) == 0
    assert f"its own, as those of {head[:12]}" in capsys.readouterr().out
    history.commit(BENCH="builds again")  # and nothing of it is left for a later build
    assert RULER_LOG not in digests(history.build(base, "HEAD")[1]).files


@pytest.mark.slow
def test_a_base_that_does_not_build_by_itself_either_is_an_error(history: History) -> None:
    """The sentence is the base's own, as without --ruler-of."""
    base = history.commit(BENCH='#include "link/gone.h"', PRODUCT="old product")
    head = history.commit(BENCH='#include "link/new.h"', NEW_HEADER="new")
    with pytest.raises(ConfigError, match=f"the firmware of {base} cannot be built here: .*link/gone.h"):
        history.build(base, head)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--ruler-of", "HEAD"], "--ruler-of stands without --at"),
        (["--at", "HEAD", "--ruler-of", ""], "--ruler-of names no commit"),
        (["--at", "HEAD", "--ruler-of", "nowhere"], "'nowhere' is not a commit"),
    ],
)
def test_a_ruler_of_nothing_is_refused(
    history: History, options: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit 2 before anything is built."""
    history.commit(BENCH="bench")
    assert run_command(["build", "--target", TARGET, *options]) == 2
    assert words in capsys.readouterr().err
    assert not list(history.path.parent.rglob("*-sources"))


@pytest.mark.slow
def test_what_a_bundle_says_of_its_ruler_has_its_types(history: History) -> None:
    """digests.json keeps to its schema; another value is damage, named with what it is."""
    base = history.commit(BENCH="old bench", PRODUCT="product")
    _built, bundle = history.build(base, history.commit(BENCH="new bench"))
    path = bundle / TARGET / DIGESTS
    content = json.loads(path.read_text())
    schema = json.loads((ROOT / "docs/reference/schema/digests.schema.json").read_text())
    jsonschema.validate(content, schema)
    for wrong, said in (
        ("HEAD", "ruler is 'HEAD'"),
        ({"commit": "c"}, r"ruler\.dirty is missing"),
        ({**content["ruler"], "moved": [1]}, r"ruler\.moved\[0\] is 1"),
        ({**content["ruler"], "x": 1}, r"ruler\.x is an unknown key"),
    ):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate({**content, "ruler": wrong}, schema)
        path.write_text(json.dumps({**content, "ruler": wrong}))
        with pytest.raises(ConfigError, match=said):
            read_digests(bundle / TARGET)

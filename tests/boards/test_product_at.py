# SPDX-License-Identifier: Apache-2.0
"""A team's product: built for chips by ESP-IDF, as it is and as it was at a commit, and put into bundles.

A stand-in takes the place of ESP-IDF; the repositories are real ones.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from hil.base.errors import ConfigError, RefusedSourcesError
from hil.base.project import read_project
from hil.boards.firmware.build_folder import Image
from hil.boards.firmware.bundle import read_digests
from hil.boards.firmware.failure import read_failure
from hil.boards.firmware.product.at import build_product_at
from hil.boards.firmware.product.build import build_product
from hil.boards.firmware.revision import find_revision
from hil.boards.firmware.selection import verify_bundle
from hil.cli.app import run_command
from hil.run.builds import find_builds
from tests.boards.idf_stand_in import put_idf
from tests.boards.revision_rig import commit_all, git
from tests.lab import path_without

# Builds as idf.py would, an image around any program, and notes what it was given. It refuses a build folder
# of other sources, and stops at an #error, both as CMake and the compiler do.
IDF_PY = """
here, main = Path.cwd(), Path("main/main.c")
cache, home = folder / "CMakeCache.txt", f"CMAKE_HOME_DIRECTORY:INTERNAL={here}\\n"
if cache.is_file() and cache.read_text() != home:
    sys.exit("CMake Error: the source does not match the source used to generate the cache")
if "#error" in main.read_text():
    sys.exit(f"{here / main}:1:2: error: {main.read_text()}")
if "disk" in main.read_text():
    sys.exit(f"{here / main}:1:2: error: No space left on device")
sdkconfig = Path(defined["SDKCONFIG"])
given = sdkconfig.read_text() if sdkconfig.is_file() else ""
target = os.environ.get("OTHER_TARGET", defined["IDF_TARGET"])
make_image(folder, chip=target, project="pump", version=main.read_text().strip()[:31])
cache.write_text(home)
shared = Path("../shared/pump.h")
(folder / "given.json").write_text(json.dumps({
    "cwd": str(here), "sdkconfig": given, "at": str(sdkconfig), "main": main.read_text(),
    "shared": shared.read_text() if shared.is_file() else "",
}))
"""

CMAKE = "include($ENV{IDF_PATH}/tools/cmake/project.cmake)\nproject(pump)\n"


@dataclass
class Product:
    """A repository with a project in ``folder``, and where it is built."""

    repository: Path
    folder: Path
    out: Path

    @property
    def main(self) -> Path:
        return self.folder / "main" / "main.c"

    def build(self, target: str = "esp32", **more: Path) -> dict[str, str]:
        """Build the working tree; return what the stand-in was given."""
        return self.given(build_product(self.folder, target=target, say=ignore, build_root=self.out, **more))

    def build_at(self, commit: str, root: Path | None = None) -> dict[str, str]:
        revision = find_revision(self.repository, commit)
        publish: Callable[[Path], Path] = lambda folder: folder  # noqa: E731
        return self.given(
            build_product_at(
                self.folder, revision, root=root, target="esp32", say=ignore, build_root=self.out,
                publish=publish,
            )
        )  # fmt: skip

    def given(self, build_dir: Path) -> dict[str, str]:
        found: dict[str, str] = json.loads((build_dir / "given.json").read_text())
        return found


def ignore(_sentence: str) -> None:
    pass


@pytest.fixture
def product(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Product:
    """A project below a repository's top, with a header outside of it, and an idf.py on PATH."""
    put_idf(IDF_PY, tmp_path, monkeypatch)
    repository = tmp_path / "repository"
    made = Product(repository, repository / "app", tmp_path / "out")
    made.main.parent.mkdir(parents=True)
    (repository / "shared").mkdir()
    (repository / "shared" / "pump.h").write_text("#define SPEED 1\n")
    (made.folder / "CMakeLists.txt").write_text(CMAKE)
    (made.folder / "main" / "CMakeLists.txt").write_text('idf_component_register(SRCS "main.c")\n')
    made.main.write_text("first\n")
    git(repository, "init", "--quiet")
    commit_all(repository)
    return made


@pytest.mark.slow
def test_a_chips_product_is_built_beside_the_projects_own_build(product: Product) -> None:
    """idf.py runs in the project; build folder and sdkconfig are hil's, begun with the project's options. A
    project of the same name elsewhere is built anew: CMake refuses a build folder of other sources."""
    own = product.folder / "sdkconfig"
    own.write_text('CONFIG_IDF_TARGET="esp32c3"\nCONFIG_PUMP=7\n')
    given = product.build("esp32c3")
    assert given["cwd"] == str(product.folder)
    assert given["sdkconfig"] == own.read_text()
    assert Path(given["at"]).parent == product.out
    assert (product.out / "pump-esp32c3" / "flasher_args.json").is_file()
    assert {path.name for path in product.folder.iterdir()} == {"CMakeLists.txt", "main", "sdkconfig"}
    moved = product.repository.rename(product.repository.with_name("moved"))
    elsewhere = Product(moved, moved / "app", product.out)
    assert elsewhere.build("esp32c3")["cwd"] == str(elsewhere.folder)


@pytest.mark.slow
def test_a_file_of_options_comes_last(
    product: Product, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sdkconfig is begun anew for each build: ESP-IDF would keep what the last build had. It refuses one
    of another target, so that one is left out; one that names none is the ESP32's. Where the project itself
    sets another target than asked for, that is refused before a board is written."""
    (product.folder / "sdkconfig").write_text("CONFIG_PUMP=7\n")
    assert product.build("esp32s3")["sdkconfig"] == ""
    (tmp_path / "more").write_text("CONFIG_PUMP=8\n")
    more = product.build(sdkconfig=tmp_path / "more")
    assert more["sdkconfig"] == "CONFIG_PUMP=7\nCONFIG_PUMP=8\n"
    (product.folder / "sdkconfig").unlink()
    Path(more["at"]).write_text("CONFIG_PUMP=9\n")  # as ESP-IDF writes into it
    assert product.build()["sdkconfig"] == ""
    monkeypatch.setenv("OTHER_TARGET", "esp32s3")
    with pytest.raises(ConfigError, match=r"for esp32, .* for esp32s3"):
        product.build("esp32")


def test_without_esp_idf_the_ways_out_are_named(product: Product, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its environment, or a build that is there: exit 2, and nothing is tried."""
    monkeypatch.setenv("PATH", path_without("idf.py"))
    with pytest.raises(ConfigError, match=r"pump for esp32 needs ESP-IDF.*export\.sh.*--firmware DIR"):
        product.build()


@pytest.mark.slow
def test_a_commits_product_is_built_of_its_own_files(product: Product) -> None:
    """Those of the whole repository, also what `export-ignore` leaves out of releases of sources; what was
    changed since, or lies beside them, takes no part."""
    (product.repository / ".gitattributes").write_text("shared export-ignore\n")
    then = commit_all(product.repository)
    product.main.write_text("second\n")
    (product.repository / "shared" / "pump.h").write_text("#define SPEED 2\n")
    (product.folder / "sdkconfig").write_text("CONFIG_PUMP=7\n")
    given = product.build_at(then)
    assert (given["main"], given["shared"], given["sdkconfig"]) == ("first\n", "#define SPEED 1\n", "")
    now = product.build()
    wanted = {"main": "second\n", "shared": "#define SPEED 2\n", "sdkconfig": "CONFIG_PUMP=7\n"}
    assert {name: now[name] for name in wanted} == wanted


@pytest.mark.slow
def test_building_a_commit_leaves_the_checkout_alone(product: Product) -> None:
    """Index, changes, untracked files, worktrees: as before. Nothing of the commit's sources stays."""
    product.main.write_text("staged\n")
    git(product.repository, "add", "--all")
    product.main.write_text("changed\n")
    (product.folder / "new.c").write_text("new\n")

    def state() -> tuple[str, ...]:
        asked = (("status", "--porcelain=v2"), ("worktree", "list"), ("diff", "--cached"), ("diff",))
        in_git = sorted(str(path) for path in (product.repository / ".git").rglob("*"))
        return (*(git(product.repository, *words) for words in asked), *in_git)

    before = state()
    product.build_at("HEAD")
    assert state() == before
    assert sorted(path.name for path in (product.out / "at").iterdir()) == [
        "esp32+product-sources.lock",
        "pump-esp32",
        "pump-esp32.lock",
        "pump-esp32.log",
    ]


@pytest.mark.slow
def test_a_submodule_is_as_the_commit_has_it(
    product: Product, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From the submodule's repository here; a commit of it that is not here is named with what fetches it."""
    for key, value in {"COUNT": "1", "KEY_0": "protocol.file.allow", "VALUE_0": "always"}.items():
        monkeypatch.setenv(f"GIT_CONFIG_{key}", value)
    other = tmp_path / "pump-driver"
    other.mkdir()
    git(other, "init", "--quiet")
    (other / "pump.h").write_text("#define SPEED 3\n")
    commit_all(other)
    git(product.repository, "rm", "-r", "--quiet", "shared")
    git(product.repository, "submodule", "--quiet", "add", str(other), "shared")
    then = commit_all(product.repository)
    (product.repository / "shared" / "pump.h").write_text("#define SPEED 4\n")
    assert product.build_at(then)["shared"] == "#define SPEED 3\n"
    missing = "5" * 40
    git(product.repository, "update-index", "--cacheinfo", f"160000,{missing},shared")
    git(product.repository, "commit", "--quiet", "--message", "later")
    with pytest.raises(ConfigError, match=rf"HEAD .* shared at {missing[:12]}, .*Next: .*fetch"):
        product.build_at("HEAD")


@pytest.mark.slow
def test_the_firmwares_folder_is_the_one_of_then(product: Product) -> None:
    """hil.toml of the commit says where the firmware was, whatever today's says."""
    toml = product.repository / "hil.toml"
    toml.write_text('schema = 1\n[firmware]\nfolder = "app"\ntargets = ["esp32"]\n')
    then = commit_all(product.repository)
    product.folder.rename(product.repository / "firmware")
    toml.write_text(toml.read_text().replace('"app"', '"firmware"'))
    now = commit_all(product.repository)
    product.folder = read_project(product.repository).firmware
    assert Path(product.build_at(then, product.repository)["cwd"]).name == "app"
    assert Path(product.build_at(now, product.repository)["cwd"]).name == "firmware"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("main", "status", "cause", "sentence"),
    [
        ("#error no pump\n", 2, "sources", ".*HEAD.*main/main.c:1:2: .*#error no pump"),
        ("disk", 3, "unknown", ".*no space left"),
    ],
)
def test_why_a_commit_does_not_build_is_told(
    product: Product, tmp_path: Path, main: str, status: int, cause: str, sentence: str
) -> None:
    """The compiler's refusal is a fact of the commit; what the machine lacks is none, and the rig's."""
    product.main.write_text(main)
    commit_all(product.repository)
    words = ["build", "-C", str(product.folder), "--target", "esp32", "--at", "HEAD"]
    assert run_command([*words, "--failure", str(tmp_path / "why")]) == status
    found = read_failure(tmp_path / "why")
    assert found[0] == cause
    assert re.match(sentence, found[1])


def test_a_commit_without_the_project_is_refused_as_such(product: Product, tmp_path: Path) -> None:
    """Nothing is built of it, whoever asks: its sources are the reason."""
    then = git(product.repository, "rev-parse", "HEAD")
    product.folder.rename(product.repository / "elsewhere")
    commit_all(product.repository)
    product.folder = product.repository / "elsewhere"
    with pytest.raises(RefusedSourcesError, match=r"is not an ESP-IDF project"):
        product.build_at(then)


@pytest.mark.slow
def test_a_bundle_holds_a_product_by_its_name(product: Product, tmp_path: Path) -> None:
    """`hil build -C … --bundle`: of a commit and of the working tree, which are told apart."""
    then = git(product.repository, "rev-parse", "HEAD")
    product.main.write_text("second\n")
    words = ["build", "-C", str(product.folder), "--target", "esp32", "--bundle"]
    assert run_command([*words, str(tmp_path / "base"), "--at", "HEAD"]) == 0
    assert run_command([*words, str(tmp_path / "head")]) == 0
    base, head = (read_digests(tmp_path / name / "esp32+product") for name in ("base", "head"))
    assert (base.commit, base.dirty, base.product) == (then, False, "pump")
    assert (head.commit, head.dirty, head.product) == (then, True, "pump")
    assert base.image == Image("esp32", product=True)
    assert base.image_sha256 != head.image_sha256
    assert list(verify_bundle(tmp_path / "base")) == ["esp32+product"]
    assert set(find_builds(tmp_path / "base", [base.image], ignore)) == {base.image}


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--at", ""], "--at is empty"),
        (["--at", "HEAD", "--ruler-of", "HEAD"], "--ruler-of with -C"),
        (["--at", "nothing"], "'nothing' is not a commit"),
        (["--target", "esp32", "--stubs", "s"], "--stubs is only for"),
        (["--target", "linux"], "be built for 'linux'"),
    ],
)
def test_what_a_product_has_not_is_refused(
    product: Product, capsys: pytest.CaptureFixture[str], words: list[str], sentence: str
) -> None:
    """Exit 2 and why."""
    assert run_command(["build", "-C", str(product.folder), *words]) == 2
    assert sentence in capsys.readouterr().err


@pytest.mark.slow
def test_a_run_builds_the_product_for_the_racks_chips(
    product: Product, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each chip's image of the project that hil.toml marks; where there is none, the way out is named."""
    monkeypatch.setattr("hil.run.builds.PROJECT_ROOT", product.repository)
    monkeypatch.setattr("hil.run.builds.BUILD_ROOT", product.out)
    images = [Image("esp32", product=True), Image("esp32c3", product=True)]
    with pytest.raises(ConfigError, match=r"holds no hil\.toml.*--firmware DIR"):
        find_builds(None, images, ignore)
    toml = product.repository / "hil.toml"
    toml.write_text('schema = 1\n[firmware]\nfolder = "app"\ntargets = ["esp32"]\n')
    found = find_builds(None, images, ignore)
    assert [found[image].build_dir.name for image in images] == ["pump-esp32", "pump-esp32c3"]

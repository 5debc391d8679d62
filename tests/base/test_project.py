# SPDX-License-Identifier: Apache-2.0
"""hil.toml: whose figures a project's are, and what it keeps."""

from __future__ import annotations

from pathlib import Path

import pytest

from hil.base.errors import ConfigError
from hil.base.project import Keep, check_product, product_here, product_of, read_project

FIRMWARE = '[firmware]\nfolder = "."\ntargets = ["esp32"]\n'


def project(root: Path, keys: str = "", *, tables: str = "", cmake: str = "project(app)") -> Path:
    (root / "CMakeLists.txt").write_text(f"include($ENV{{IDF_PATH}}/tools/cmake/project.cmake)\n{cmake}\n")
    (root / "hil.toml").write_text(f"schema = 1\n{keys}\n{FIRMWARE}{tables}")
    return root


@pytest.mark.parametrize(
    ("keys", "tables", "cmake", "product"),
    [
        ("", "", "project(app)", "app"),
        ("", "", 'PROJECT( "Sensor_Node" LANGUAGES C )\nproject(of_a_library)', "sensor-node"),
        ("", "", "set(NAME gateway)\nproject(${NAME}\n    VERSION 1.2)", "gateway"),
        ("", "", "# project(other)\nproject(gateway_2)", "gateway-2"),
        ('product = "sensor-node"', "", "project(app)", "sensor-node"),
        ("", '[product]\nname = "sensor-node"\n', "project(app)", "sensor-node"),
        ('product = ""', "", "project(app)", ""),
    ],
)
def test_a_project_has_the_product_that_it_names(
    tmp_path: Path, keys: str, tables: str, cmake: str, product: str
) -> None:
    """What hil.toml says, as a key or in a table, "" too; else what the firmware's project() is called."""
    assert product_of(read_project(project(tmp_path, keys, tables=tables, cmake=cmake))) == product


@pytest.mark.parametrize("name", ["Sensor", "sensor_node", "-a", "a-", "a--b", "a/b", "a:b", " ", "a" * 33])
def test_a_name_that_no_series_can_have_is_refused(tmp_path: Path, name: str) -> None:
    """a-z, 0-9 and single -, 32 at most: the sentence has the file, the name and one that is right."""
    with pytest.raises(ConfigError, match=r"hil\.toml: product: .* is not a valid product name.*sensor-node"):
        read_project(project(tmp_path, f'product = "{name}"'))
    assert check_product("a" * 32, "here") == "a" * 32


@pytest.mark.parametrize("cmake", ["project(${NAME})", "project(___)", f"project({'x' * 33})"])
def test_a_project_that_names_nothing_is_asked_for_a_name(tmp_path: Path, cmake: str) -> None:
    """No name is made up: the sentence names the CMakeLists.txt, and where to say it."""
    found = read_project(project(tmp_path, cmake=cmake))
    wanted = r"CMakeLists\.txt: project\(.*\) is not usable .*hil\.toml: product"
    with pytest.raises(ConfigError, match=wanted):
        product_of(found)


def test_what_hil_itself_measures_has_no_product() -> None:
    """In the tool's own checkout the product is "", so every history of before is of it."""
    assert product_here() == ""


def test_what_is_kept_has_defaults(tmp_path: Path) -> None:
    """Captures stay, and the history is in out/; a folder is read from that of hil.toml."""
    assert read_project(project(tmp_path)).keep == Keep(None, None)
    tables = '[keep]\ncaptures_days = 3\nhistory = "../values"\n'
    assert read_project(project(tmp_path, tables=tables)).keep == Keep(3, tmp_path.parent / "values")


@pytest.mark.parametrize(("keys", "strict"), [("", None), ("strict = true", True), ("strict = false", False)])
def test_strict_is_said_or_left_to_the_program(tmp_path: Path, keys: str, strict: bool | None) -> None:
    """What hil.toml does not say is not decided for it."""
    assert read_project(project(tmp_path, keys)).strict is strict


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("schema = 1\n[firmware\n", "hil.toml"),
        ("schema = 2\n", "schema is 2; expected 1"),
        ('schema = 1\n[firmware]\nfolder = "."\n', "firmware.targets is None"),
        ('schema = 1\n[firmware]\nfolder = "src"\ntargets = []\n', "src is not an ESP-IDF"),
        (f"schema = 1\nproduct = 1\n{FIRMWARE}", "product is 1"),
        (f"schema = 1\nkeep = 3\n{FIRMWARE}", "a number of days"),
        (f'schema = 1\nstrict = "yes"\n{FIRMWARE}', "strict is 'yes'; expected true or false"),
        (f"schema = 1\n{FIRMWARE}[keep]\ncaptures_days = 0\n", "keep.captures_days is 0"),
        (f'schema = 1\n{FIRMWARE}[keep]\ncaptures_days = "14"\n', "keep.captures_days is '14'"),
        (f"schema = 1\n{FIRMWARE}[keep]\nhistory = 1\n", "keep.history is 1"),
    ],
)
def test_a_wrong_value_is_named(tmp_path: Path, text: str, said: str) -> None:
    """File, key and value stand in the sentence; unknown keys are test_field_silence.py's."""
    project(tmp_path)
    (tmp_path / "hil.toml").write_text(text)
    with pytest.raises(ConfigError, match=r"hil\.toml") as caught:
        read_project(tmp_path)
    assert said in str(caught.value)


def test_a_project_has_the_command_that_flashes_it(tmp_path: Path) -> None:
    """[flash] of hil.toml; a wrong one is refused with the file's name, and without one there is none."""
    table = '[flash]\ncommand = "idf.py -B {build} -p {port} encrypted-flash"\ntimeout_s = 60\n'
    command = read_project(project(tmp_path, tables=table)).flash
    assert command
    assert (command.words[0], command.timeout_s) == ("idf.py", 60.0)
    with pytest.raises(ConfigError, match=r"hil\.toml: flash\.command lacks \{build\}"):
        read_project(project(tmp_path, tables='[flash]\ncommand = "idf.py -p {port} flash"\n'))
    assert read_project(project(tmp_path)).flash is None

# SPDX-License-Identifier: Apache-2.0
"""A product's options have the values that its Kconfig files and its sdkconfig give them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from hil.base.errors import ConfigError
from hil.boards.firmware.product.kconfig import evaluate, read_options, read_settings
from hil.boards.firmware.product.project import find_project, sdkconfig_header

KCONFIG = """\
menu "Pump"
    config PUMP_SPEED
        int "Speed"
        range 1 100
        default 40 if PUMP_FAST
        default 20
        help
            config in a help text is no option:
                default 99

    config PUMP_FAST
        bool "Fast"
        depends on !PUMP_QUIET && (CHIP_BIG || CHIP_HUGE)
        default y

    config PUMP_QUIET
        bool "Quiet"
        select PUMP_MUTE

    config PUMP_MUTE
        bool "Mute"

    choice PUMP_DIRECTION
        prompt "Direction"
        default PUMP_DOWN
        config PUMP_UP
            bool "Up"
        config PUMP_DOWN
            bool "Down"
            depends on CHIP_BIG
    endchoice

    if PUMP_UP
        config PUMP_NAME
            string "Name"
            default "up pump"
    endif
endmenu
"""


def values(tmp_path: Path, base: Mapping[str, str], given: Mapping[str, str]) -> dict[str, str]:
    path = tmp_path / "Kconfig.projbuild"
    path.write_text(KCONFIG)
    found = evaluate(read_options([path]), base, given)
    return {name.removeprefix("PUMP_"): value for name, value in found.items() if name.startswith("PUMP_")}


def test_defaults_follow_their_conditions_also_on_later_options(tmp_path: Path) -> None:
    """The first default whose condition holds counts, whatever the order of the options."""
    found = values(tmp_path, {"CHIP_BIG": "y"}, {})
    assert (found["SPEED"], found["FAST"], found["QUIET"], found["MUTE"]) == ("40", "y", "n", "n")
    assert (found["UP"], found["DOWN"]) == ("n", "y")


def test_a_given_value_counts_where_its_conditions_hold(tmp_path: Path) -> None:
    """What sdkconfig gives is taken, selects others, and is n where it depends on what is not."""
    found = values(tmp_path, {"CHIP_BIG": "y"}, {"PUMP_QUIET": "y", "PUMP_FAST": "y", "PUMP_SPEED": "7"})
    assert (found["FAST"], found["MUTE"], found["SPEED"]) == ("n", "y", "7")


def test_a_choice_has_one_member(tmp_path: Path) -> None:
    """The member that is given, else the default, else the first that can be; and what hangs on it."""
    assert values(tmp_path, {}, {})["UP"] == "y"
    found = values(tmp_path, {"CHIP_BIG": "y"}, {"PUMP_UP": "y"})
    assert (found["UP"], found["DOWN"], found["NAME"]) == ("y", "n", "up pump")


def test_options_that_go_round_in_a_circle_are_refused(tmp_path: Path) -> None:
    """An option that is set where it is not set has no value."""
    path = tmp_path / "Kconfig"
    path.write_text("config A\n    bool\n    default y if !A\n")
    with pytest.raises(ConfigError, match="in a circle"):
        evaluate(read_options([path]), {}, {})


def test_sdkconfig_is_read_and_written_as_a_header(tmp_path: Path) -> None:
    """y is 1, n is not defined, numbers stay, texts are quoted, also one of digits."""
    path = tmp_path / "Kconfig"
    path.write_text('config TEXT\n    string "Text"\n')
    given = read_settings('CONFIG_A=y\n# CONFIG_B is not set\nCONFIG_N=0x1F\nCONFIG_TEXT="42"\n# a comment\n')
    assert given == {"A": "y", "B": "n", "N": "0x1F", "TEXT": "42"}
    header = sdkconfig_header(given, {option.name: option for option in read_options([path])})
    defined = [line for line in header.splitlines() if line.startswith("#define")]
    assert defined == ["#define CONFIG_A 1", "#define CONFIG_N 0x1F", '#define CONFIG_TEXT "42"']


def test_a_folder_without_a_project_is_refused(tmp_path: Path) -> None:
    """What is missing is named."""
    with pytest.raises(ConfigError, match=r"it lacks a CMakeLists\.txt with project\(\)"):
        find_project(tmp_path)
    (tmp_path / "CMakeLists.txt").write_text("project(pump)\n")
    with pytest.raises(ConfigError, match=r"it lacks main/CMakeLists\.txt"):
        find_project(tmp_path)


def test_a_component_of_idf_path_needs_idf_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The manifest that names it is named, and what to do."""
    monkeypatch.delenv("IDF_PATH", raising=False)
    main = tmp_path / "main"
    main.mkdir()
    (tmp_path / "CMakeLists.txt").write_text("project(pump)\n")
    (main / "CMakeLists.txt").write_text('idf_component_register(SRCS "main.c")\n')
    (main / "idf_component.yml").write_text("dependencies:\n  common:\n    path: ${IDF_PATH}/common\n")
    with pytest.raises(ConfigError, match=r"main/idf_component\.yml takes a component from IDF_PATH"):
        find_project(tmp_path)
    monkeypatch.setenv("IDF_PATH", str(tmp_path))
    with pytest.raises(ConfigError, match=r"names a component in .*/common, which is not there"):
        find_project(tmp_path)
    (tmp_path / "common").mkdir()
    (main / "idf_component.yml").write_text(
        "dependencies:\n  common:\n    path: ${IDF_PATH}/common\n  espressif/led:\n    version: '1'\n"
        "  espressif/other:\n    version: '1'\n    rules:\n      - if: 'target in [esp32h2]'\n"
    )
    project = find_project(tmp_path)
    assert project.components == (main, (tmp_path / "common").resolve())
    assert project.from_registry == ("espressif/led",)

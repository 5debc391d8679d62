# SPDX-License-Identifier: Apache-2.0
"""A product's options have the values that its Kconfig files and its sdkconfig give them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from hil.base.errors import ConfigError
from hil.boards.firmware.product.build import partitions_csv
from hil.boards.firmware.product.kconfig import Options, options_header, read_options
from hil.boards.firmware.product.project import find_project

pytestmark = pytest.mark.slow  # kconfgen is a program

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


TOP = "include($ENV{IDF_PATH}/tools/cmake/project.cmake)\nproject(pump)\n"
MAIN = 'idf_component_register(SRCS "main.c")\n'


@pytest.fixture(autouse=True)
def _without_idf(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("IDF_PATH", raising=False)


def written(folder: Path, files: Mapping[str, str]) -> Path:
    for name, text in {"CMakeLists.txt": TOP, "main/CMakeLists.txt": MAIN, **files}.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def configured(folder: Path, files: Mapping[str, str], said: list[str] | None = None) -> Options:
    say = (said if said is not None else []).append
    return read_options(find_project(written(folder, files)), chip="esp32", say=say)


@pytest.mark.parametrize(
    ("given", "values"),
    [
        ("", {"SPEED": "20", "FAST": None, "MUTE": None, "UP": "1", "DOWN": None, "NAME": '"up pump"'}),
        ("CHIP_BIG=y", {"SPEED": "40", "FAST": "1", "UP": None, "DOWN": "1", "NAME": None}),
        ("CHIP_BIG=y PUMP_QUIET=y PUMP_FAST=y PUMP_SPEED=7", {"FAST": None, "MUTE": "1", "SPEED": "7"}),
        ("CHIP_BIG=y PUMP_UP=y", {"UP": "1", "DOWN": None, "NAME": '"up pump"'}),
        ("PUMP_FAST=y CHIP_BIG=y PUMP_FAST=n", {"FAST": None, "SPEED": "20"}),
    ],
)
def test_defaults_conditions_choices_and_selections(
    tmp_path: Path, given: str, values: dict[str, str | None]
) -> None:
    """The first default whose condition holds counts; what sdkconfig gives counts where it can be."""
    defaults = "".join(f"CONFIG_{word}\n" for word in given.split())
    chip = 'config CHIP_BIG\n    bool "Big"\n' if "CHIP_BIG" in given else ""
    found = configured(tmp_path, {"main/Kconfig.projbuild": chip + KCONFIG, "sdkconfig.defaults": defaults})
    assert {name: found.values.get(f"PUMP_{name}") for name in values} == values


def of_speed(name: str = "SPEED") -> str:
    return f'config {name}\n    int "Speed"\n    default 5\n'


def speeds(files: Mapping[str, int]) -> dict[str, str]:
    return {name: f"CONFIG_SPEED={value}\n" for name, value in files.items()}


def in_component(name: str, files: Mapping[str, str]) -> dict[str, str]:
    texts = {"CMakeLists.txt": "idf_component_register()", **files}
    return {f"components/{name}/{file}": text for file, text in texts.items()}


@pytest.fixture(scope="module")
def of_many_files(tmp_path_factory: pytest.TempPathFactory) -> Options:
    """A project's options, of Kconfig files and files of values of all kinds."""
    main = {
        "main/Kconfig.projbuild": 'source "$PROJECT_DIR/main/Kconfig.a"\n',
        "main/Kconfig.a": of_speed("SOURCED"),
        "main/Kconfig": 'rsource "more/*.in"\n' + of_speed("IN_DEFAULTS") + of_speed("OF_CHIP"),
        "main/more/Kconfig.in": of_speed("BELOW"),
        "main/sdkconfig.rename": "CONFIG_OLD CONFIG_RENAMED\n",
    }
    menu = 'if !SLOW\nmenuconfig IN_MENU\n    int\n    prompt "Speed"\n    default 6 if !SLOW\n'
    menu += 'endif\nconfig SLOW\n    bool "Slow"\n'
    others = {
        **in_component("lower", {"kconfig": 'orsource "not there"\n' + of_speed("IN_LOWER_CASE")}),
        **in_component("menu", {"Kconfig": menu}),
        **in_component("top", {"Kconfig.projbuild": of_speed("OF_COMPONENT") + of_speed("RENAMED")}),
        **in_component("hex", {"Kconfig": of_speed("IN_HEX").replace("int", "hex").replace("5", "960")}),
        **in_component("own", {"Kconfig": 'config LWIP_TCP_MSS\n    string "Its own"\n    default "s"\n'}),
    }
    defaults = {
        "sdkconfig.defaults": "\ufeff# BOM\r\nCONFIG_IN_DEFAULTS=7\r\nCONFIG_OLD=9\r\nCONFIG_OF_CHIP=1\r\n",
        "sdkconfig.defaults.esp32": "CONFIG_OF_CHIP=8\n",
    }
    return configured(tmp_path_factory.mktemp("project"), {**main, **others, **defaults})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("SOURCED", "5"),
        ("BELOW", "5"),
        ("IN_HEX", "0x960"),
        ("IN_LOWER_CASE", "5"),
        ("IN_MENU", "6"),
        ("IN_DEFAULTS", "7"),
        ("OF_CHIP", "8"),
        ("RENAMED", "9"),
        ("OF_COMPONENT", "5"),
        ("LWIP_TCP_MSS", '"s"'),  # which the host has, too
    ],
)
def test_field_options_come_from_all_the_files_that_idf_py_reads(
    of_many_files: Options, name: str, value: str
) -> None:
    """Sourced files, any case of the name, prompts apart, defaults by chip, renamed options, its own."""
    assert of_many_files.values[name] == value


@pytest.mark.parametrize(
    ("files", "value"),
    [
        (speeds({"sdkconfig.defaults.esp32": 8}), "5"),
        (
            {
                "CMakeLists.txt": 'set(SDKCONFIG_DEFAULTS "a;b/c")\n' + TOP,
                **speeds({"a": 1, "b/c": 2, "b/c.esp32": 3, "sdkconfig.defaults": 4}),
            },
            "3",
        ),
        (
            {
                "CMakeLists.txt": "set(SDKCONFIG ${CMAKE_SOURCE_DIR}/of/it)\n" + TOP,
                **speeds({"of/it": 11, "sdkconfig": 4}),
            },
            "11",
        ),
    ],
)
def test_field_values_come_from_the_files_that_idf_py_reads(
    tmp_path: Path, files: Mapping[str, str], value: str
) -> None:
    """A chip's own defaults need those of all; SDKCONFIG_DEFAULTS and SDKCONFIG name others."""
    assert configured(tmp_path, {"main/Kconfig": of_speed(), **files}).values["SPEED"] == value


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ({"main/Kconfig.projbuild": "config A\n    def_bool y\n"}, r"main/Kconfig\.projbuild:2: .*def_bool"),
        ({"main/Kconfig": 'source "gone"\n'}, r"gone.* not found"),
        ({"main/Kconfig": "config A\n    bool\n    default y if !A\n"}, "Dependency loop"),
        ({"sdkconfig.defaults": "garbage\n"}, r"sdkconfig\.defaults:1: 'garbage' is no option"),
        ({"sdkconfig.defaults": "\ufeffCONFIG_A=7\n"}, r"sdkconfig\.defaults:1: '\\ufeffCONFIG_A=7' is no"),
        ({"CMakeLists.txt": "set(SDKCONFIG_DEFAULTS gone)\n" + TOP}, r"CMakeLists\.txt:3 .*gone"),
        (
            {
                "sdkconfig.defaults": "CONFIG_ESPTOOLPY_FLASHSIZE_16MB=y\n"
                'CONFIG_PARTITION_TABLE_CUSTOM=y\nCONFIG_PARTITION_TABLE_CUSTOM_FILENAME="a.csv"\n'
            },
            r"CUSTOM_FILENAME names .*a\.csv",
        ),
    ],
)
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # kconfiglib leaves files open
def test_field_what_cannot_be_read_ends_the_build(
    tmp_path: Path, files: Mapping[str, str], words: str
) -> None:
    """The sentence has file and line, as esp-idf-kconfig or CMake says them."""

    def read() -> None:
        project = find_project(written(tmp_path, files))
        found = read_options(project, chip="esp32", say=lambda _: None)
        partitions_csv(project, found, lambda _: None)

    with pytest.raises(ConfigError, match=words):
        read()


@pytest.mark.parametrize(
    ("files", "words"),
    [
        (
            {
                "main/Kconfig": f'{of_speed()}config A\n    bool "A"\n    depends on SOC_BT_SUPPORTED\n',
                "sdkconfig.defaults": "CONFIG_BT_ENABLED=y\nCONFIG_SPEED=fast\n",
                "partitions.csv": "",
            },
            (
                "BT_ENABLED of no Kconfig",
                "SOC_BT_SUPPORTED of no Kconfig",
                "'fast' is",
                "partitions.csv is taken",
            ),
        ),
        (
            {"sdkconfig.defaults": "CONFIG_PARTITION_TABLE_TWO_OTA=y\n", "partitions.csv": ""},
            ("instead of CONFIG_PARTITION_TABLE_TWO_OTA",),
        ),
    ],
)
def test_field_what_is_not_as_with_idf_py_is_said(
    tmp_path: Path, files: Mapping[str, str], words: Sequence[str]
) -> None:
    """An option that nothing here knows, a value that does not fit, another partition table."""
    said: list[str] = []
    project = find_project(written(tmp_path, files))
    partitions_csv(project, read_options(project, chip="esp32", say=said.append), said.append)
    assert not [each for each in words if each not in "\n".join(said)]


def test_the_table_has_the_name_that_the_options_give(tmp_path: Path) -> None:
    """CONFIG_PARTITION_TABLE_CUSTOM_FILENAME is below the project; its words do not build the host anew."""
    options = 'CONFIG_PARTITION_TABLE_CUSTOM=y\nCONFIG_PARTITION_TABLE_CUSTOM_FILENAME="parts/8mb.csv"\n'
    files = {"sdkconfig.defaults": options, "parts/8mb.csv": "", "partitions.csv": ""}
    found = configured(tmp_path, files)
    assert partitions_csv(find_project(tmp_path), found, print) == tmp_path / "parts" / "8mb.csv"
    assert found.of_host == {}


def test_field_options_of_esp_idf_come_from_idf_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where IDF_PATH has Kconfig files they are read with the project's, and the build says so."""
    idf = tmp_path / "idf"
    sources = "".join(f'source "$COMPONENT_KCONFIGS_{name}SOURCE_FILE"\n' for name in ("PROJBUILD_", ""))
    target = 'mainmenu "it"\nconfig IDF_TARGET\n    string\n    default "$IDF_TARGET"\n'
    of_idf = 'config BT_ENABLED\n    bool "BT"\n    depends on IDF_TARGET = "esp32"\n'
    of_idf += "config OF_BT\n    int\n    default 3\n"
    renamed = "CONFIG_BLUE CONFIG_BT_ENABLED\n"
    kconfigs = {"Kconfig": f"{target}{sources}", "components/bt/Kconfig": of_idf}
    written(idf, {**kconfigs, "sdkconfig.rename": renamed})
    monkeypatch.setenv("IDF_PATH", str(idf))
    said: list[str] = []
    files = {
        "sdkconfig.defaults": "CONFIG_BLUE=y\nCONFIG_TYPO=y\n",
        "main/Kconfig": 'config A\n    bool "A"\n    default BT_ENABLED\n',
    }
    found = configured(tmp_path / "project", files, said)
    assert (found.values["BT_ENABLED"], found.values["A"], found.of_project["OF_BT"]) == ("1", "1", "3")
    assert "'TYPO'" in "\n".join(said)
    assert f"ESP-IDF's of {idf}" in "\n".join(said)


def test_options_are_written_as_a_header(tmp_path: Path) -> None:
    """y is 1, n is not defined, numbers stay, texts are quoted, also those of digits and with quotes."""
    kinds = {"A": "bool", "B": "bool", "N": "hex", "TEXT": "string", "SAYS": "string", "EMPTY": "string"}
    files = {
        "main/Kconfig": "".join(f'config {name}\n    {kind} "{name}"\n' for name, kind in kinds.items()),
        "sdkconfig": 'CONFIG_A=y\nCONFIG_N=0x1F\nCONFIG_TEXT="42"\nCONFIG_SAYS="a \\"b\\""\n',
    }
    values = configured(tmp_path, files).values
    header = options_header({name: values.get(name) for name in kinds})
    assert [line for line in header.splitlines() if line.startswith("#define")] == [
        "#define CONFIG_A 1", '#define CONFIG_EMPTY ""', "#define CONFIG_N 0x1F",
        '#define CONFIG_SAYS "a \\"b\\""', '#define CONFIG_TEXT "42"',
    ]  # fmt: skip
    assert "#undef CONFIG_B" in header


def test_field_options_of_the_host_are_changed_in_the_host(tmp_path: Path) -> None:
    """A chip's own options and numbers that are 1 can be set as others; what the chip is stays."""
    defaults = "CONFIG_ESP_TASK_WDT_CHECK_IDLE_TASK_CPU1=n\nCONFIG_LWIP_SNTP_MAX_SERVERS=3\n"
    defaults += 'CONFIG_IDF_TARGET="esp32c3"\nCONFIG_PTHREAD_TASK_CORE_DEFAULT=-1\n'
    assert configured(tmp_path, {"sdkconfig.defaults": defaults}).of_host == {
        "ESP_TASK_WDT_CHECK_IDLE_TASK_CPU1": None,
        "LWIP_SNTP_MAX_SERVERS": "3",
    }


def test_a_folder_without_a_project_is_refused(tmp_path: Path) -> None:
    """What is missing is named."""
    of_a_component = "idf_component_register(SRCS pump.c)\n"
    missing = {None: r"a CMakeLists\.txt", of_a_component: r"project\(\)", TOP: r"main/CMakeLists\.txt"}
    for text, lacks in missing.items():
        if text:
            (tmp_path / "CMakeLists.txt").write_text(text)
        with pytest.raises(ConfigError, match=f"lacks {lacks}"):
            find_project(tmp_path)


def test_a_component_of_idf_path_needs_idf_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The manifest that names it is named, and what to do."""
    main = written(tmp_path, {}) / "main"
    (main / "idf_component.yml").write_text("dependencies:\n  common:\n    path: ${IDF_PATH}/common\n")
    with pytest.raises(ConfigError, match=r"main/idf_component\.yml .* IDF_PATH"):
        find_project(tmp_path)
    monkeypatch.setenv("IDF_PATH", str(tmp_path))
    with pytest.raises(ConfigError, match=r"/common, which has no CMakeLists"):
        find_project(tmp_path)
    (tmp_path / "common").mkdir()
    (tmp_path / "common" / "CMakeLists.txt").write_text("idf_component_register()\n")
    (main / "idf_component.yml").write_text(
        "dependencies:\n  common:\n    path: ${IDF_PATH}/common\n  espressif/led:\n    version: '1'\n"
        "  espressif/other:\n    version: '1'\n    rules:\n      - if: 'target in [esp32h2]'\n"
    )
    project = find_project(tmp_path)
    assert project.components == ((tmp_path / "common").resolve(), main)
    assert project.from_registry == ("espressif/led",)

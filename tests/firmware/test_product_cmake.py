# SPDX-License-Identifier: Apache-2.0
"""A project's CMakeLists.txt is read by CMake itself, whatever the project writes in it."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest

from hil.base.errors import ConfigError
from hil.base.idf_project import is_idf_project, read_cmake
from hil.boards.firmware.build import HostTree
from hil.boards.firmware.product.project import IdfProject, find_project
from tests.firmware.test_product_build import output_of
from tests.firmware.test_product_kconfig import written
from tests.host_builds import build_product

IDF = "include($ENV{IDF_PATH}/tools/cmake/project.cmake)\n"
HELLO = {"lib/hello/CMakeLists.txt": "idf_component_register(SRCS hello.c INCLUDE_DIRS .)\n"}
X = IDF + "project(x)"


def component(name: str, text: str = "idf_component_register()\n") -> dict[str, str]:
    return {f"components/{name}/CMakeLists.txt": text}


@pytest.fixture(autouse=True)
def _without_idf(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("IDF_PATH", raising=False)


def found(folder: Path, top: str, files: Mapping[str, str]) -> IdfProject:
    return find_project(written(folder, {"CMakeLists.txt": top, **files}))


@pytest.mark.parametrize(
    ("top", "files", "components"),
    [
        (X, {}, "main"),
        ("list(APPEND EXTRA_COMPONENT_DIRS lib/hello)\n" + X, HELLO, "hello main"),
        ("set(EXTRA_COMPONENT_DIRS ${CMAKE_SOURCE_DIR}/lib)\n" + X, HELLO, "hello main"),
        ("set(EXTRA_COMPONENT_DIRS ${CMAKE_CURRENT_LIST_DIR}/lib)\n" + X, HELLO, "hello main"),
        ('set(D "lib")\nif(1)\n  set(EXTRA_COMPONENT_DIRS "${D}")\nendif()\n' + X, HELLO, "hello main"),
        ("set(COMPONENT_DIRS main)\n" + X, component("a", "no()"), "main"),
        (X, component("a", "register_component()\n"), "a main"),
        (X, component(".b", "no()\n"), "main"),
        ("set(COMPONENTS main)\n" + X, component("a"), "main"),
        (
            IDF + "idf_build_set_property(MINIMAL_BUILD ON)\nproject(x)",
            {
                "main/CMakeLists.txt": "idf_component_register(PRIV_REQUIRES a)\n",
                **component("a", "idf_component_register(REQUIRES b)\n"),
                **component("b"),
                **component("c"),
            },
            "b a main",
        ),
        ("set(EXCLUDE_COMPONENTS a)\n" + X, component("a"), "main"),
        (
            "include(more.cmake)\n" + X,
            {**HELLO, "more.cmake": "set(EXTRA_COMPONENT_DIRS lib)\n"},
            "hello main",
        ),
    ],
)
def test_field_components_are_those_that_cmake_finds(
    tmp_path: Path, top: str, files: Mapping[str, str], components: str
) -> None:
    """Variables, lists, conditions, files included, filters: each component after those that it requires."""
    project = found(tmp_path, top, files)
    assert [folder.name for folder in project.components] == components.split()


@pytest.mark.parametrize(
    ("call", "name"),
    [
        ('project("smart-meter" VERSION 1.2.0)', "smart-meter"),
        ("PROJECT(x)", "x"),
        ("project(\n    fs_spiffs\n    VERSION 1.2.0\n    LANGUAGES C CXX\n)", "fs_spiffs"),
        ("get_filename_component(N ${CMAKE_CURRENT_LIST_DIR} NAME)\nproject(${N})", "here"),
        ("project(x C CXX ASM) # project(y)", "x"),
    ],
)
def test_field_the_name_is_what_project_is_called_with(tmp_path: Path, call: str, name: str) -> None:
    """Quoted, in capitals, over lines, from a variable."""
    assert found(tmp_path / "here", f"{IDF}{call}\n", {}).name == name


@pytest.mark.parametrize(
    ("top", "main", "words"),
    [
        (X + "\nfrobnicate(1)", "", r"CMakeLists\.txt:3 \(frobnicate\): Unknown CMake command"),
        (X, "idf_component_regster()", r"main/CMakeLists\.txt:1 \(idf_component_regster\)"),
        (X[:-1], "", r"Parse error"),
        ("set(EXTRA_COMPONENT_DIRS gone)\n" + X, "", r"CMakeLists\.txt:3 .*/gone"),
        ("set(EXTRA_COMPONENT_DIRS $ENV{IDF_PATH}/a)\n" + X, "", "IDF_PATH is not set"),
        ('message(FATAL_ERROR "not so")', "", "not so"),
        (X, "idf_component_register(REQUIRED_IDF_TARGETS esp32h2)", "esp32h2, not for esp32"),
        ("include($ENV{IDF_PATH}/tools/cmakev2/idf.cmake)", "", "is not read here"),
        ("project(x)", "", r"lacks project\(\)"),
    ],
)
def test_field_what_cmake_refuses_names_file_and_line(
    tmp_path: Path, top: str, main: str, words: str
) -> None:
    """The sentence is CMake's; nobody is told to mend a project that CMake takes."""
    files = {"main/CMakeLists.txt": main or "idf_component_register()"}
    with pytest.raises(ConfigError, match=words):
        found(tmp_path, top, files)


def test_nothing_is_written_into_the_project(tmp_path: Path) -> None:
    """What a file writes to its build folder does not lie in the project."""
    top = "file(WRITE ${CMAKE_BINARY_DIR}/made here)\n" + X + "\n"
    assert found(tmp_path, top, {}).name == "x"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["CMakeLists.txt", "main"]


def test_cmake_is_asked_for_where_it_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A rack without CMake is told what needs it, and the way without."""
    (tmp_path / "CMakeLists.txt").touch()
    monkeypatch.setattr(shutil, "which", lambda _: None)
    with pytest.raises(ConfigError, match=r"needs cmake, which is not installed.*product = "):
        read_cmake(tmp_path)


@pytest.mark.parametrize(
    ("text", "is_one"),
    [
        (IDF, True),
        ('include("${IDF_PATH}/tools/cmake/project.cmake")', True),
        ("set(P $ENV{IDF_PATH}/tools/cmake/project.cmake)\ninclude(${P})", True),
        ("# include($ENV{IDF_PATH}/tools/cmake/project.cmake)\nproject(x)", False),
        ("project(x)", False),
    ],
)
def test_a_project_of_esp_idf_is_known_by_its_text(tmp_path: Path, text: str, is_one: bool) -> None:
    """Nothing is run of a folder that names no project.cmake."""
    (tmp_path / "CMakeLists.txt").write_text(text)
    assert is_idf_project(tmp_path) == is_one


@pytest.mark.slow
def test_field_who_mends_what_is_said_by_the_tool_that_fails(tmp_path: Path) -> None:
    """A command that CMake does not know is no fault of a source; an error of the compiler is."""
    found(tmp_path, X + "\n", {"main/main.c": "#error no\nvoid app_main(void) {}\n"})
    with pytest.raises(ConfigError, match=r"main\.c:1:2: error: #error no.*Next: mend the source"):
        build_product(tmp_path, say=lambda _: None, build_root=tmp_path / "out")
    cmake = tmp_path / "main" / "CMakeLists.txt"
    cmake.write_text(f"{cmake.read_text()}frobnicate()\n")
    with pytest.raises(ConfigError, match=r"main/CMakeLists\.txt:2 \(frobnicate\): Unknown") as caught:
        build_product(tmp_path, say=lambda _: None, build_root=tmp_path / "out")
    assert "mend the source" not in str(caught.value)


MAIN_CMAKE = """\
spaces2list(NOTHING)
set(COMPONENT_SRCS "main.c")
set(COMPONENT_ADD_INCLUDEDIRS ".")
set(COMPONENT_REQUIRES tools)
register_component()
idf_component_get_property(lib freertos COMPONENT_LIB)
target_compile_options(${lib} PRIVATE -Wno-error)
idf_component_get_property(tools tools COMPONENT_LIB)
target_compile_definitions(${tools} PRIVATE OF_TOOLS=4)
component_compile_options(-DOF_MAIN=3)
idf_build_set_property(COMPILE_OPTIONS "-DOF_ALL=5" APPEND)
target_add_binary_data(${COMPONENT_TARGET} "a note.txt" TEXT RENAME_TO renamed)
target_link_libraries(${COMPONENT_LIB} PRIVATE idf::esp_timer INTERFACE "-Wl,--wrap=tool")
spiffs_create_partition_image(storage ../www FLASH_IN_PROJECT)
of_project_include(ran)
"""
MAIN_C = """\
#include <stdio.h>
#include <stdlib.h>
extern const char note[] asm("_binary_renamed_start"), top[] asm("_binary_top_txt_start");
int tool(void);
int __real_tool(void);
int __wrap_tool(void) { return 10 * __real_tool(); }
void app_main(void) {
    printf("%d %d %d %d %s %s %s\\n", tool(), OF_MAIN, OF_ALL, OF_TOP, note, top, OF_INCLUDE);
    exit(0);
}
"""


@pytest.mark.slow
def test_field_a_project_is_built_as_its_files_say(tmp_path: Path) -> None:
    """In a path with blanks: options of all and of one component, embedded files, wrapped calls."""
    top = f"{IDF}add_compile_definitions(OF_TOP=6)\nproject(x)\n"
    top += "target_add_binary_data(${PROJECT_NAME}.elf top.txt TEXT)\nlittlefs_create_partition_image(a b)\n"
    include = "function(of_project_include word)\n"
    include += '    component_compile_options(-DOF_INCLUDE="${word}")\nendfunction()\n'
    files = {
        "main/CMakeLists.txt": MAIN_CMAKE, "main/main.c": MAIN_C, "main/a note.txt": "note", "top.txt": "top",
        "components/tools/CMakeLists.txt": "idf_component_register(SRC_DIRS . EXCLUDE_SRCS no.c)\n",
        "components/tools/project_include.cmake": include,
        "components/tools/tool.c": "int tool(void) { return OF_TOOLS; }\n", "components/tools/no.c": "no\n",
        "components/tools/chip.S": "no\n",
    }  # fmt: skip
    folder = tmp_path / "my project"
    found(folder, top, files)
    said: list[str] = []
    built = build_product(folder, say=said.append, build_root=tmp_path / "my builds")
    assert "40 3 5 6 note top ran\n" in output_of(built, "x")
    left_out = "\n".join(line for line in said if line.startswith("no effect here"))
    for what in ("component freertos", "spiffs_create", "littlefs_create", "chip.S, which is in a chip's"):
        assert left_out.count(what) == 1, what


@pytest.mark.slow
def test_a_tree_is_configured_where_options_or_files_differ(tmp_path: Path) -> None:
    """An option's other value, a new file and a changed one; what failed fails again, and nothing more."""
    (tmp_path / "host").mkdir()
    lists = tmp_path / "host" / "CMakeLists.txt"
    lists.write_text(
        'cmake_minimum_required(VERSION 3.18)\nproject(p NONE)\nset(VALUE "" CACHE STRING "")\n'
        "file(GLOB found CONFIGURE_DEPENDS *.txt)\nfile(APPEND ${CMAKE_SOURCE_DIR}/said x)\n"
        "if(VALUE EQUAL 3)\n    message(FATAL_ERROR no)\nendif()\n"
        "add_custom_target(t COMMAND true)\n"
    )

    def configured_after(value: int) -> int:
        HostTree(tmp_path, tmp_path / "tree", (f"-DVALUE={value}",)).build("t")
        return len((tmp_path / "host" / "said").read_text())

    assert [configured_after(value) for value in (1, 1, 2, 2)] == [1, 1, 2, 2]
    (tmp_path / "host" / "new.txt").touch()
    assert [configured_after(2), configured_after(2)] == [3, 3]
    lists.write_text(lists.read_text() + "\n")
    assert [configured_after(2), configured_after(2)] == [4, 4]
    for _ in range(2):
        with pytest.raises(ConfigError, match="no"):
            configured_after(3)
    assert configured_after(2) == 7

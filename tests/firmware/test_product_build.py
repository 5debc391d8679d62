# SPDX-License-Identifier: Apache-2.0
"""A product is built as it is, and what the host lacks is told before."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from hil.base.errors import ConfigError
from hil.boards.firmware.build_folder import console_baud
from hil.boards.firmware.product.kconfig import read_options
from hil.boards.firmware.product.needs import Needs
from hil.boards.firmware.product.project import find_project
from hil.boards.firmware.product.stubs import write_stubs
from hil.boards.firmware.selection import description_of, same_flash
from tests.firmware.test_product_kconfig import written
from tests.host_builds import build_product
from tests.virtual.virtual_board_rig import flash_files, write_flash_file

pytestmark = pytest.mark.slow

RUN_TIMEOUT_S = 30.0
Build = Callable[..., Path]

MAIN_C = """\
#include <stdio.h>
#include <stdlib.h>
#include "cJSON.h"
#include "lwip/sockets.h"
#include "nvs_flash.h"
#include "pump.h"

extern const char note_start[] asm("_binary_note_txt_start");

void app_main(void) {
    uint32_t starts = 0;
    nvs_handle_t handle;
    ESP_ERROR_CHECK(nvs_flash_init());
    ESP_ERROR_CHECK(nvs_open("pump", NVS_READWRITE, &handle));
    nvs_get_u32(handle, "starts", &starts);
    ESP_ERROR_CHECK(nvs_set_u32(handle, "starts", starts + 1));
    printf("%s,%d,%d,%s\\n", CONFIG_PUMP_NAME, pump_speed(), CONFIG_FREERTOS_HZ, note_start);
    cJSON *root = cJSON_Parse("{\\"speed\\": 7}");
    printf("speed %d of JSON\\n", cJSON_GetObjectItem(root, "speed")->valueint);
    cJSON_Delete(root);
    printf("segments of %d\\n", CONFIG_LWIP_TCP_MSS);
    struct in6_addr address = IN6ADDR_LOOPBACK_INIT;
    printf("last word %lx\\n", (unsigned long)ntohl(address.un.u32_addr[3]));
    exit(0);
}
"""


@pytest.fixture(scope="module")
def build_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("firmware")


@pytest.fixture
def product(tmp_path: Path) -> Path:
    files = {
        "CMakeLists.txt": "cmake_minimum_required(VERSION 3.16)\n"
        "include($ENV{IDF_PATH}/tools/cmake/project.cmake)\nproject(pump_product)\n",
        "main/CMakeLists.txt": 'set(sources "main.c")\n'
        "if(CONFIG_PUMP_EXTRA)\n    list(APPEND sources extra.c)\nendif()\n"
        'idf_component_register(SRCS ${sources} INCLUDE_DIRS "." REQUIRES pump EMBED_TXTFILES note.txt)\n',
        "main/main.c": MAIN_C,
        "main/extra.c": "#error not with CONFIG_PUMP_EXTRA off\n",
        "main/note.txt": "from a file",
        "main/Kconfig.projbuild": 'config PUMP_NAME\n    string "Name"\n    default "pump"\n'
        'config PUMP_EXTRA\n    bool "Extra"\n',
        "components/pump/CMakeLists.txt": 'idf_component_register(SRC_DIRS "." INCLUDE_DIRS "include")\n',
        "components/pump/pump.c": '#include "pump.h"\nint pump_speed(void) {\n    return PUMP_SPEED;\n}\n',
        "components/pump/include/pump.h": "#pragma once\n#define PUMP_SPEED 7\nint pump_speed(void);\n",
    }
    return written(tmp_path / "product", files)


@pytest.fixture
def build(product: Path, build_root: Path) -> Build:
    """Build the product as its files are now."""
    return partial(build_product, product, say=lambda _: None, build_root=build_root)


def needs(error: ConfigError) -> list[tuple[str, str, str]]:
    """Return what a build says that the host lacks, in order: kind, name, file:line."""
    what = r"^ *(?:(\w+) )?(\S+), (?:at|included by) \S*/(\S+)"
    return re.findall(what, error.sentence, re.MULTILINE)


def output_of(folder: Path, name: str = "pump_product") -> str:
    program = folder / f"{name}.elf"
    program.chmod(0o755)
    done = subprocess.run([str(program)], capture_output=True, text=True, timeout=RUN_TIMEOUT_S, check=True)
    return done.stdout


def test_a_product_is_built_with_its_components_options_and_files(product: Path, build: Build) -> None:
    """Its CMakeLists.txt files decide what is built, sdkconfig.defaults its values."""
    (product / "sdkconfig.defaults").write_text('CONFIG_PUMP_NAME="big pump"\nCONFIG_FREERTOS_HZ=1000\n')
    folder = build()
    output = output_of(folder).splitlines()
    assert "big pump,7,1000,from a file" in output
    assert "speed 7 of JSON" in output  # ESP-IDF's component json
    assert "last word 1" in output  # lwIP's name of what is in an IPv6 address
    assert (folder / "flasher_args.json").is_file()
    assert console_baud(folder) == 115_200  # ESP-IDF's own, not that of hil's firmware


@pytest.mark.heavy
def test_where_a_product_lies_is_not_in_its_image(
    product: Path, build: Build, build_root: Path, tmp_path: Path
) -> None:
    """The same sources give the same bytes in another folder, with their file names in them all the same."""
    (product / "components/pump/pump.c").write_text(
        '#include <stdio.h>\n#include "pump.h"\n'
        "int pump_speed(void) {\n    puts(__FILE__);\n    return PUMP_SPEED;\n}\n"
    )
    built = build().rename(tmp_path / "first")
    there = shutil.copytree(product, tmp_path / "a longer name" / "elsewhere")
    again = build_product(there, say=lambda _: None, build_root=build_root)
    assert same_flash(built, again)
    assert b"./components/pump/pump.c" in (again / "pump_product.bin").read_bytes()


CXX_CPP = """\
#include <memory>
#include <stdexcept>
#include <string>
#include <typeinfo>
#include "esp_event.h"
#include "esp_http_client.h"
#include "esp_http_server.h"
#include "esp_log.h"
#include "esp_timer.h"
#include "esp_wifi.h"
#include "freertos/FreeRTOS.h"
#include "freertos/queue.h"
#include "freertos/task.h"
#include "lwip/sockets.h"
#include "mqtt_client.h"
#include "nvs_flash.h"
#include "pump.h"

struct Told { virtual ~Told() = default; virtual int speed() { return pump_speed(); } };
struct Slow : Told { int speed() override { throw std::runtime_error("too slow"); } };
static Told *s_built_before_main = new Slow();
static QueueHandle_t s_queue;

static void work(void *) {
    int speed = 0;
    try {
        speed = s_built_before_main->speed();
    } catch (const std::exception &error) {
        ESP_LOGI("pump", "%s of %s", error.what(), typeid(*s_built_before_main).name());
    }
    speed = std::make_unique<Told>()->speed();
    xQueueSend(s_queue, &speed, portMAX_DELAY);
    vTaskDelete(nullptr);
}

extern "C" void app_main() {
    esp_timer_create_args_t timer = {.callback = work, .arg = nullptr, .name = "t"};
    wifi_init_config_t wifi = WIFI_INIT_CONFIG_DEFAULT();
    httpd_config_t server = HTTPD_DEFAULT_CONFIG();
    esp_http_client_config_t client = {};
    client.url = "http://a";
    esp_mqtt_client_config_t mqtt = {};
    mqtt.broker.address.uri = "mqtt://a";
    ESP_ERROR_CHECK(nvs_flash_init());
    ESP_ERROR_CHECK(esp_event_loop_create_default());
    s_queue = xQueueCreate(1, sizeof(int));
    xTaskCreate(work, "work", 4096, nullptr, 5, nullptr);
    int speed = 0;
    xQueueReceive(s_queue, &speed, portMAX_DELAY);
    std::string text = "speed " + std::to_string(speed) + " of " + client.url + mqtt.broker.address.uri;
    bool initialised = wifi.magic == WIFI_INIT_CONFIG_MAGIC;
    printf("%s %d %d %s\\n", text.c_str(), initialised, server.server_port, timer.name);
    exit(0);
}
"""


def test_cxx_is_built_beside_c(product: Path, build: Build) -> None:
    """app_main in C++, constructors before it, exceptions and RTTI where sdkconfig has them, calls into C."""
    (product / "main/main.cpp").write_text(CXX_CPP)
    cmake = product / "main/CMakeLists.txt"
    cmake.write_text(cmake.read_text().replace('"main.c"', '"main.cpp"'))
    header = product / "components/pump/include/pump.h"
    guarded = '#ifdef __cplusplus\nextern "C"\n#endif\nint pump_speed'
    header.write_text(header.read_text().replace("int pump_speed", guarded))
    (product / "sdkconfig.defaults").write_text(
        "CONFIG_COMPILER_CXX_EXCEPTIONS=y\nCONFIG_COMPILER_CXX_RTTI=y\n"
    )
    output = output_of(build())
    assert "too slow of 4Slow" in output
    assert "speed 7 of http://amqtt://a 1 80 t\n" in output
    (product / "sdkconfig.defaults").write_text("")
    with pytest.raises(ConfigError, match="exception handling disabled"):
        build()


def test_what_cxx_needs_is_listed_and_stubbed(product: Path, build: Build, tmp_path: Path) -> None:
    """Calls, types and constants of a missing header are told apart in C++ too, and a stub of them builds."""
    (product / "main/main.cpp").write_text(
        '#include <cstdio>\n#include <cstdlib>\n#include "driver/i2c_master.h"\n'
        'extern "C" void app_main() {\n    i2c_master_bus_handle_t bus = nullptr;\n'
        '    std::printf("answer %d\\n", i2c_new_master_bus(I2C_NUM_1, &bus));\n    std::exit(0);\n}\n'
    )
    cmake = product / "main/CMakeLists.txt"
    cmake.write_text(cmake.read_text().replace('"main.c"', '"main.cpp"'))
    with pytest.raises(ConfigError) as caught:
        build(stubs=tmp_path / "stubs")
    assert set(needs(caught.value)) >= {
        ("", "driver/i2c_master.h", "main.cpp:3"),
        ("call", "i2c_new_master_bus", "main.cpp:6"),
        ("type", "i2c_master_bus_handle_t", "main.cpp:5"),
        ("name", "I2C_NUM_1", "main.cpp:6"),
    }
    top = product / "CMakeLists.txt"
    top.write_text(f"set(EXTRA_COMPONENT_DIRS {tmp_path / 'stubs'})\n" + top.read_text())
    answers = tmp_path / "stubs" / "answers.h"
    answers.write_text(answers.read_text().replace("i2c_new_master_bus 0", "i2c_new_master_bus 263"))
    output = output_of(build())
    assert "answer 263\n" in output


VERSION_C = """\
#include <stdio.h>
#include <stdlib.h>
#include "esp_app_desc.h"

void app_main(void) {
    printf("%s of %s\\n", esp_app_get_description()->version, esp_app_get_description()->project_name);
    exit(0);
}
"""


@pytest.mark.heavy
def test_options_of_a_file_come_last(product: Path, build: Build, tmp_path: Path) -> None:
    """--sdkconfig outdoes the project's own; without a word ESP-IDF's tick of 100 Hz counts."""
    (product / "sdkconfig").write_text('CONFIG_PUMP_NAME="own"\n')
    (tmp_path / "more").write_text('CONFIG_PUMP_NAME="given"\nCONFIG_LWIP_TCP_MSS=1000\n')
    folder = build(sdkconfig=tmp_path / "more")
    output = output_of(folder)
    assert "given,7,100," in output
    assert "segments of 1000\n" in output  # an option of the host's own


@pytest.mark.parametrize("value", ["y", "n"])
def test_an_option_that_the_host_leaves_unset_reaches_its_sources(product: Path, value: str) -> None:
    """What sdkconfig.h says is not set is an option of the host's own, as one with a value is."""
    option = "ESP_HTTP_CLIENT_ENABLE_BASIC_AUTH"
    (product / "sdkconfig.defaults").write_text(f"CONFIG_{option}={value}\n")
    options = read_options(find_project(product), chip="esp32", say=lambda _: None)
    assert options.of_host == ({option: "1"} if value == "y" else {})
    assert option not in options.of_project


def test_the_version_is_what_esp_idfs_build_would_say(product: Path) -> None:
    """git's word, VERSION in project(), version.txt, PROJECT_VER, the option: each goes before the last."""

    def version(**options: str) -> str:
        return find_project(product).version(options)

    assert version() == "1"
    author = ("-c", "user.name=a", "-c", "user.email=a@b")
    for words in (["init", "-q"], ["add", "."], [*author, "commit", "-qm", "1"], ["tag", "v3.1"]):
        subprocess.run(["git", "-C", str(product), *words], check=True)
    assert version() == "v3.1"
    cmake = product / "CMakeLists.txt"
    cmake.write_text(cmake.read_text() + "# PROJECT_VER\n")
    assert version() == "v3.1-dirty"
    cmake.write_text(cmake.read_text().replace("(pump_product)", "(pump_product VERSION 2.5.1)"))
    assert version() == "2.5.1"
    (product / "version.txt").write_text("4.0-rc1\n")
    assert version() == "4.0-rc1"
    (product / "major").write_text("7")
    before = 'file(READ ${CMAKE_CURRENT_LIST_DIR}/major MAJOR)\nset(PROJECT_VER "${MAJOR}.2")\n'
    cmake.write_text(cmake.read_text().replace("project(pump", before + "project(pump"))
    assert version() == "7.2"
    assert version(APP_PROJECT_VER_FROM_CONFIG="y", APP_PROJECT_VER='"of the option"') == "of the option"


def test_a_product_reads_its_version(product: Path, build: Build) -> None:
    """esp_app_get_description() has it of the image; two builds of which only it differs are two images."""
    (product / "main/main.c").write_text(VERSION_C)
    (product / "version.txt").write_text("4.0-rc1\n")
    built = build()
    description = description_of(built)
    assert description
    assert (description.version, description.project) == ("4.0-rc1", "pump_product")
    flash = write_flash_file(product / "flash", flash_files(built), 4 << 20)
    program = built / "pump_product.elf"
    program.chmod(0o755)
    with flash.open("r+b") as file:
        done = subprocess.run(
            [str(program)], env={"VBOARD_FLASH_FD": str(file.fileno())}, pass_fds=[file.fileno()],
            capture_output=True, text=True, timeout=RUN_TIMEOUT_S, check=True,
        )  # fmt: skip
    assert "4.0-rc1 of pump_product\n" in done.stdout
    first = built.rename(product / "first")
    (product / "version.txt").write_text("4.0\n")
    assert not same_flash(first, build())


def test_what_was_fetched_of_the_registry_is_built(product: Path, build: Build) -> None:
    """A dependency that is not there is told with the way out before anything is built; then it is as any."""
    (product / "main/idf_component.yml").write_text(
        'dependencies:\n  idf: ">=5.0"\n  acme/gear: "^1.0"\n  led_strip: "*"\n'
    )
    with pytest.raises(ConfigError, match="not fetched: acme/gear, led_strip") as caught:
        build()
    assert "idf.py reconfigure" in str(caught.value)
    assert "--stubs" not in str(caught.value)
    for folder, speed in (("acme__gear", 3), ("espressif__led_strip", 4)):
        component = product / "managed_components" / folder
        component.mkdir(parents=True)
        (component / "CMakeLists.txt").write_text('idf_component_register(SRCS "a.c" INCLUDE_DIRS ".")\n')
        (component / f"{folder}.h").write_text(f"int {folder}_speed(void);\n")
        (component / "a.c").write_text(f"int {folder}_speed(void) {{\n    return {speed};\n}}\n")
    (product / "main/main.c").write_text(
        "#include <stdio.h>\n#include <stdlib.h>\n"
        '#include "acme__gear.h"\n#include "espressif__led_strip.h"\n'
        "void app_main(void) {\n"
        '    printf("gear %d\\n", acme__gear_speed() * espressif__led_strip_speed());\n    exit(0);\n}\n'
    )
    assert "gear 12\n" in output_of(build())


@pytest.mark.parametrize(
    ("rule", "needed"),
    [
        ("idf_version >=5.0,<6.0", True),
        ("idf_version >=6.0", False),
        ("idf_version <5.3", False),
        ("idf_version ==5.5", True),
        ("idf_version ~5.4", False),
        ("target in [esp32s3, esp32]", True),
        ("target in [esp32s3]", False),
        ("target not in [esp32]", False),
        ("target != esp32", False),
        ("idf_version >=5.0 && target == esp32c3", False),
        ("idf_version >=6.0 || target == esp32", True),
    ],
)
def test_a_dependency_of_another_chip_or_esp_idf_is_left_out(product: Path, rule: str, needed: bool) -> None:
    """rules: all have to hold."""
    (product / "main/idf_component.yml").write_text(
        f'dependencies:\n  acme/gear:\n    version: "*"\n    rules:\n      - if: "{rule}"\n'
    )
    assert (find_project(product).from_registry == ("acme/gear",)) == needed


def test_a_chips_own_defaults_are_for_that_chip(product: Path) -> None:
    """sdkconfig.defaults.esp32c3 counts in a build for it, and for no other."""
    (product / "sdkconfig.defaults").write_text("")
    (product / "sdkconfig.defaults.esp32c3").write_text('CONFIG_PUMP_NAME="small"\n')
    names = [
        read_options(find_project(product), chip=chip, say=lambda _: None).values["PUMP_NAME"]
        for chip in ("esp32", "esp32c3")
    ]
    assert names == ['"pump"', '"small"']


INITIALISED = """\
#include "driver/i2c_master.h"
#include "esp_timer.h"
#include "pump.h"

static i2c_master_bus_handle_t s_bus = NULL;

int pump_speed(void) {
    i2c_master_bus_config_t config = {
        .i2c_port = I2C_NUM_0,
        .flags.enable_internal_pullup = 1,
        .on_done = pump_speed,
        .name = "pump",
        .deep = {
            .level = 2,
        },
    };
    config.scl_io_num = 3;
    return i2c_new_master_bus(&config, &s_bus) == 0 ? config.scl_io_num + config.deep.level : -1;
}
"""


MEMBERS = {"i2c_port": 9, "flags": 10, "on_done": 11, "name": 12, "deep": 13, "scl_io_num": 17}


def test_stubs_of_a_structure_that_is_initialised_build(product: Path, build: Build, tmp_path: Path) -> None:
    """What the host lacks is told before anything is built: the header with who includes it, each call, type,
    name and member with its place; the stub has them: numbers, pointers, structures.

    Where stubs were written, the next step is to add them, and no longer to write them.
    """
    (product / "components/pump/pump.c").write_text(INITIALISED)
    said: list[str] = []
    stubs = tmp_path / "stubs"
    with pytest.raises(ConfigError) as caught:
        build(say=said.append, stubs=stubs)
    assert needs(caught.value) == [
        ("", "driver/i2c_master.h", "pump.c:1"),
        ("call", "i2c_new_master_bus", "pump.c:18"),
        ("type", "i2c_master_bus_handle_t", "pump.c:5"),
        ("type", "i2c_master_bus_config_t", "pump.c:8"),
        ("name", "I2C_NUM_0", "pump.c:9"),
        *(("member", f"i2c_master_bus_config_t.{name}", f"pump.c:{line}") for name, line in MEMBERS.items()),
        ("member", "flags.enable_internal_pullup", "pump.c:10"),
        ("member", "deep.level", "pump.c:14"),
    ]
    assert "--stubs" not in caught.value.next_step
    add = f'set(EXTRA_COMPONENT_DIRS "{stubs}")'
    assert add in caught.value.next_step
    assert "EXTRA_COMPONENT_DIRS" not in "".join(said)
    cmake = product / "CMakeLists.txt"
    cmake.write_text(f"{add}\n{cmake.read_text()}")
    assert "pump,5,100," in output_of(build())


def test_a_member_that_the_hosts_structure_lacks_is_told(product: Path, build: Build) -> None:
    """A structure of ESP-IDF that is here without it: no stub can add it."""
    source = '#include "esp_timer.h"\n#include "pump.h"\nint pump_speed(void) {\n'
    source += "    esp_timer_create_args_t args = {.of_a_chip = 3};\n    return args.name ? 1 : 2;\n}\n"
    (product / "components/pump/pump.c").write_text(source)
    with pytest.raises(ConfigError) as caught:
        build()
    assert needs(caught.value) == [("member", "esp_timer_create_args_t.of_a_chip", "pump.c:4")]
    assert "--stubs" not in caught.value.next_step


def test_stubs_are_not_written_over_something(tmp_path: Path) -> None:
    """What somebody filled in stays."""
    (tmp_path / "kept.c").write_text("")
    with pytest.raises(ConfigError, match="is not empty"):
        write_stubs(Needs(calls={"i2c_new_master_bus": (tmp_path / "main.c", 6)}), tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["kept.c"]


def test_another_tick_is_refused(product: Path, build: Build) -> None:
    """A virtual board ticks at 100 or 1000 Hz."""
    (product / "sdkconfig").write_text("CONFIG_FREERTOS_HZ=250\n")
    with pytest.raises(ConfigError, match="CONFIG_FREERTOS_HZ=250"):
        build()

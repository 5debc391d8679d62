# SPDX-License-Identifier: Apache-2.0
"""A product that finds its broker by mDNS, and is found by it."""

from __future__ import annotations

import json
import os
import socket
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from hil.probe.mdns import GROUP, PORT, PTR, SRV, TXT, A, packed, read_name
from tests.firmware.test_product_kconfig import written
from tests.host_builds import build_product

pytestmark = pytest.mark.slow

RUN_TIMEOUT_S = 60.0

MAIN_C = """\
#include <stdio.h>
#include <stdlib.h>
#include "esp_event.h"
#include "esp_wifi.h"
#include "freertos/FreeRTOS.h"
#include "freertos/task.h"
#include "mdns.h"
#include "nvs_flash.h"

static void on_address(void *arg, esp_event_base_t base, int32_t id, void *data) {
    xTaskNotifyGive((TaskHandle_t)arg);
}

static void connect(void) {
    wifi_init_config_t init = WIFI_INIT_CONFIG_DEFAULT();
    wifi_config_t config = {.sta = {.ssid = "any"}};
    ESP_ERROR_CHECK(nvs_flash_init());
    ESP_ERROR_CHECK(esp_netif_init());
    ESP_ERROR_CHECK(esp_event_loop_create_default());
    esp_netif_create_default_wifi_sta();
    ESP_ERROR_CHECK(esp_wifi_init(&init));
    ESP_ERROR_CHECK(esp_event_handler_register(IP_EVENT, IP_EVENT_STA_GOT_IP, on_address,
                                               xTaskGetCurrentTaskHandle()));
    ESP_ERROR_CHECK(esp_wifi_set_mode(WIFI_MODE_STA));
    ESP_ERROR_CHECK(esp_wifi_set_config(WIFI_IF_STA, &config));
    ESP_ERROR_CHECK(esp_wifi_start());
    ESP_ERROR_CHECK(esp_wifi_connect());
    ulTaskNotifyTake(pdTRUE, portMAX_DELAY);
}

static void look(void) {
    mdns_result_t *found = NULL;
    esp_ip4_addr_t address = {0};
    ESP_ERROR_CHECK(mdns_query_ptr("_mqtt", "_tcp", 10000, 1, &found));
    printf("service %s at %s:%d, " IPSTR "\\n", found->instance_name, found->hostname, found->port,
           IP2STR(&found->addr->addr.u_addr.ip4));
    mdns_query_results_free(found);
    ESP_ERROR_CHECK(mdns_query_srv("rack-broker", "_mqtt", "_tcp", 10000, &found));
    printf("server %s:%d\\n", found->hostname, found->port);
    mdns_query_results_free(found);
    ESP_ERROR_CHECK(mdns_query_a("rack-broker", 10000, &address));
    printf("address " IPSTR "\\n", IP2STR(&address));
    printf("nobody %s\\n", esp_err_to_name(mdns_query_a("nobody", 300, &address)));
    ESP_ERROR_CHECK(mdns_query_ptr("_none", "_udp", 300, 1, &found));
    printf("none %d\\n", found == NULL);
}

void app_main(void) {
    mdns_txt_item_t texts[] = {{"model", "p 1"}, {"open", NULL}};
    char name[MDNS_NAME_BUF_LEN];
    printf("early %s\\n", esp_err_to_name(mdns_hostname_set("pump-1")));
    ESP_ERROR_CHECK(mdns_init());
    printf("nameless %s\\n", esp_err_to_name(mdns_service_add(NULL, "_http", "_tcp", 80, NULL, 0)));
    ESP_ERROR_CHECK(mdns_hostname_set("pump-1"));
    ESP_ERROR_CHECK(mdns_hostname_get(name));
    ESP_ERROR_CHECK(mdns_instance_name_set("The pump. No 1"));
    ESP_ERROR_CHECK(mdns_service_add(NULL, "_http", "_tcp", 80, texts, 2));
    ESP_ERROR_CHECK(mdns_service_txt_item_set("_http", "_tcp", "model", "p 2"));
    ESP_ERROR_CHECK(mdns_service_port_set("_http", "_tcp", 8080));
    printf("twice %s\\n", esp_err_to_name(mdns_service_add(NULL, "_http", "_tcp", 80, NULL, 0)));
    connect();
    look();
    printf("offers %s\\n", name);
    getchar();
    ESP_ERROR_CHECK(mdns_service_remove("_http", "_tcp"));
    printf("gone %d\\n", !mdns_service_exists("_http", "_tcp", NULL));
    getchar();
    mdns_free();
    exit(0);
}
"""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    files = {
        "CMakeLists.txt": "include($ENV{IDF_PATH}/tools/cmake/project.cmake)\nproject(finder)\n",
        "main/idf_component.yml": 'dependencies:\n  espressif/mdns: "^1.8"\n',
        "main/main.c": MAIN_C,
    }
    product = written(tmp_path / "product", files)
    built = build_product(product, say=lambda _: None, build_root=tmp_path / "firmware")
    elf = built / "finder.elf"
    elf.chmod(0o755)
    return elf


@pytest.fixture
def responder(tmp_path: Path) -> Iterator[Path]:
    """The rack's answers, on the loopback; the file has its lines."""
    lines = tmp_path / "mdns.jsonl"
    argv = [sys.executable, "-m", "hil.probe.mdns", "--name", "rack-broker", "--address", "127.0.0.1"]
    process = subprocess.Popen([*argv, "--port", "1883", "--lines", str(lines)])
    try:
        yield lines
    finally:
        process.terminate()
        assert process.wait(RUN_TIMEOUT_S) == 0


def ask(name: str, kind: int) -> list[tuple[str, int, bytes]]:
    """Ask as a plain resolver does; return names, kinds and data of all records that come, [] for silence."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        asking.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton("127.0.0.1"))
        asking.settimeout(1.0)
        head = struct.pack(">HHHHHH", 4711, 0, 1, 0, 0, 0)
        asking.sendto(head + packed(name) + struct.pack(">HH", kind, 1), (GROUP, PORT))
        try:
            message = asking.recv(9000)
        except TimeoutError:
            return []
    number, flags, asked, answers, _, extra = struct.unpack_from(">HHHHHH", message)
    assert (number, flags, asked) == (4711, 0x8400, 1)
    at = read_name(message, 12)[1] + 4
    records = []
    for _ in range(answers + extra):
        owner, at = read_name(message, at)
        kind, _class, _ttl, length = struct.unpack_from(">HHIH", message, at)
        records.append((owner, kind, message[at + 10 : at + 10 + length]))
        at += 10 + length
    return records


def test_a_product_finds_the_broker_and_is_found(program: Path, responder: Path) -> None:
    """The registry's mdns needs no download; queries end with what was found or in time; services answer."""
    process = subprocess.Popen(
        [str(program)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        env={**os.environ, "VBOARD_INTERFACE": "lo"},
    )  # fmt: skip
    assert process.stdin
    assert process.stdout
    try:
        said = ""
        for line in process.stdout:
            said += line
            if line.startswith("offers"):
                break
        for line in (
            *("early ESP_ERR_INVALID_STATE", "nameless ESP_ERR_INVALID_STATE", "twice ESP_ERR_INVALID_ARG"),
            *("service rack-broker at rack-broker:1883, 127.0.0.1", "server rack-broker:1883"),
            *("address 127.0.0.1", "nobody ESP_ERR_NOT_FOUND", "none 1", "offers pump-1"),
        ):
            assert line in said.splitlines()
        noted = map(json.loads, responder.read_text().splitlines())
        assert any("_mqtt._tcp.local" in line.get("asked", []) for line in noted)
        assert ask("pump-1.local", A) == [("pump-1.local", A, socket.inet_aton("127.0.0.1"))]
        instance = b"\x0eThe pump. No 1\x05_http\x04_tcp\x05local\0"
        pointer, server, texts, address = ask("_http._tcp.local", PTR)
        assert pointer == ("_http._tcp.local", PTR, instance)
        assert server[1:] == (SRV, struct.pack(">HHH", 0, 0, 8080) + packed("pump-1.local"))
        assert texts[1:] == (TXT, b"\x09model=p 2\x04open")
        assert address[1] == A
        process.stdin.write("\n")
        process.stdin.flush()
        assert process.stdout.readline() == "gone 1\n"
        assert ask("_http._tcp.local", PTR) == []
        assert ask("pump-1.local", A)
        process.stdin.write("\n")
        process.stdin.flush()
        assert process.wait(RUN_TIMEOUT_S) == 0
    finally:
        process.kill()
        process.communicate()

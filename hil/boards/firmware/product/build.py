# SPDX-License-Identifier: Apache-2.0
"""Build a product for a virtual board, or say what it needs that the host has not."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from hil.base.errors import ConfigError, RefusedSourcesError
from hil.base.idf_project import read_record
from hil.boards.firmware.build import (
    BUILD_ROOT,
    FIRMWARE_DIR,
    IMAGE_TARGETS,
    VIRTUAL_PREFIX,
    VIRTUAL_TARGETS,
    HostTree,
    Say,
    locked,
)
from hil.boards.firmware.build_folder import TICKS_HZ
from hil.boards.firmware.image import FLASH_SIZE, build_image_dir
from hil.boards.firmware.product.chip import build_for_chip
from hil.boards.firmware.product.kconfig import Options, options_header, read_options
from hil.boards.firmware.product.needs import Needs, build_or_need
from hil.boards.firmware.product.project import IdfProject, find_project
from hil.boards.firmware.product.stubs import write_stubs
from hil.store.files import short_path

TICK = "FREERTOS_HZ"
FLASH_SIZES = ("1MB", "2MB", "4MB", "8MB", "16MB")
_TABLES = ("SINGLE_APP", "SINGLE_APP_LARGE", "TWO_OTA", "TWO_OTA_LARGE")
Publish = Callable[[Path], Path]


@dataclass(frozen=True)
class _Tree:
    """Where a product is built; products of one host configuration share the host's objects."""

    host: HostTree
    work: Path
    image_dir: Path


def build_product(
    folder: Path,
    *,
    target: str = "virtual-esp32",
    say: Say = print,
    sdkconfig: Path | None = None,
    stubs: Path | None = None,
    build_root: Path = BUILD_ROOT,
    tree_root: Path | None = None,
    publish: Publish | None = None,
    of_git: str | None = None,
) -> Path:
    """Build the ESP-IDF project in ``folder``; return the build folder, to be flashed as any.

    Chips are built by ESP-IDF, virtual boards against firmware/host. ``sdkconfig`` is a file of options that
    come after the project's own. With ``stubs`` a component for what the host has not is written there. The
    objects of the host are in ``tree_root`` (build_root where it is None), for products to share. ``publish``
    is called with the folder before another build may change it, and names what is returned. ``of_git`` is
    git's word for sources that lie outside of it.

    Raises:
        RefusedSourcesError: no project, or something that the host has not (each header, who includes it,
            what is used of it).
        ConfigError: an unknown target, a missing tool, or a build that failed.
    """
    if target in IMAGE_TARGETS:
        return build_for_chip(
            folder, target, say=say, sdkconfig=sdkconfig, build_root=build_root, publish=publish
        )
    if target not in VIRTUAL_TARGETS:
        raise ConfigError(
            f"a product cannot be built for {target!r}.",
            next_step=f"use one of: {', '.join((*VIRTUAL_TARGETS, *IMAGE_TARGETS))}.",
        )
    chip = target.removeprefix(VIRTUAL_PREFIX)
    project = find_project(folder, chip=chip)
    _check_fetched(project)
    options = read_options(project, chip=chip, say=say, sdkconfig=sdkconfig)
    version = project.version(options.values, of_git)
    tree = _tree(project, options, chip, build_root, tree_root or build_root)
    with locked(tree.host.lock, project.name, say):
        _prepare(project, options, version, tree)
        tree.host.configure()
        for what in read_record(tree.work / "record").left_out:
            say(f"no effect here: {what}")
        say(f"Building {project.name} {version} in {short_path(tree.image_dir)}")
        needs = build_or_need(
            lambda: tree.host.build("product", keep_going=True), tree.host.log, tree.work / "stand-ins"
        )
        _check_needs(needs, project, stubs, say)
        build_image_dir(
            tree.host.folder / "product.elf",
            tree.image_dir,
            chip=chip,
            project=project.name,
            version=version,
            tick_hz=int(options.values[TICK]),
            partitions_csv=partitions_csv(project, options, say),
            console_baud=int(options.values["ESP_CONSOLE_UART_BAUDRATE"]),
            table_offset=int(options.values["PARTITION_TABLE_OFFSET"], 0),
            flash_size=_flash_size(options),
        )
        return publish(tree.image_dir) if publish else tree.image_dir


def _check_fetched(project: IdfProject) -> None:
    if project.from_registry:
        raise RefusedSourcesError(
            f"{project.name} needs components of the registry that are not fetched: "
            f"{', '.join(project.from_registry)}.",
            next_step="fetch them into managed_components: idf.py reconfigure, where ESP-IDF is.",
        )


def _check_needs(needs: Needs, project: IdfProject, stubs: Path | None, say: Say) -> None:
    if needs == Needs():
        return
    if stubs:
        write_stubs(needs, stubs)
        say(f"Wrote stubs for {len(needs.calls)} calls to {stubs}")
    missing = "".join(f"\n  {line}" for line in needs.told(project.folder))
    raise RefusedSourcesError(
        f"{project.name} needs what the host has not:{missing}", next_step=_next_step(needs, stubs)
    )


def _next_step(needs: Needs, stubs: Path | None) -> str:
    if stubs:
        return (
            f"add the stubs to the project's CMakeLists.txt, before its project(): "
            f'set(EXTRA_COMPONENT_DIRS "{stubs.resolve()}"); then build again.'
        )
    if needs.members and not (needs.headers or needs.calls or needs.types or needs.names):
        return "leave these members out where the host builds it, or measure on a chip."
    return "hil build -C … --stubs DIR writes a component that answers these calls, to be filled in."


def partitions_csv(project: IdfProject, options: Options, say: Say) -> Path:
    """Return the table that a product is flashed with, and say where it is not what idf.py would take."""
    values = options.values
    named = project.folder / values.get("PARTITION_TABLE_CUSTOM_FILENAME", '"partitions.csv"').strip('"')
    chosen = next((name for name in _TABLES if f"PARTITION_TABLE_{name}" in values), "")
    if not chosen and not named.is_file():
        raise RefusedSourcesError(
            f"CONFIG_PARTITION_TABLE_CUSTOM_FILENAME names {named}, which is not there."
        )
    if chosen == _TABLES[0] and named.is_file():
        say(f"partitions: {named} is taken; idf.py does so with CONFIG_PARTITION_TABLE_CUSTOM=y alone")
    elif chosen:
        say(f"partitions: hil's own two slots instead of CONFIG_PARTITION_TABLE_{chosen}")
        return FIRMWARE_DIR / "partitions.csv"
    return named


def _flash_size(options: Options) -> str:
    """Return the flash that a product is for; a virtual board has room for 16 MB."""
    size = options.values.get("ESPTOOLPY_FLASHSIZE", FLASH_SIZE).strip('"')
    if size not in FLASH_SIZES:
        raise RefusedSourcesError(
            f"CONFIG_ESPTOOLPY_FLASHSIZE is {size}: a virtual board has {FLASH_SIZES[-1]} at most.",
            next_step="build the table for it with --sdkconfig, or measure on a chip.",
        )
    return max(size, FLASH_SIZE, key=FLASH_SIZES.index)


def _tree(project: IdfProject, options: Options, chip: str, build_root: Path, tree_root: Path) -> _Tree:
    tick_hz = int(options.values[TICK])
    if tick_hz not in TICKS_HZ:
        raise RefusedSourcesError(
            f"CONFIG_FREERTOS_HZ={tick_hz}: a virtual board ticks at one of {', '.join(map(str, TICKS_HZ))}.",
            next_step="set one of these in sdkconfig.defaults.",
        )
    of_host = options_header(options.of_host)
    key = hashlib.sha256(repr((chip, tick_hz, of_host)).encode()).hexdigest()[:8]
    folder = tree_root / f"product-{chip}-{key}"
    work = build_root / "products" / f"{project.name}-{chip}"
    header = folder.with_name(f"{folder.name}.config") / "host_options.h"
    _write(header, of_host)
    cmake = (
        f"-DIDF_TARGET={chip}",
        f"-DHIL_TICK_HZ={tick_hz if tick_hz != 1000 else ''}",
        f"-DHIL_PRODUCT={work / 'product.cmake'}",
        f"-DHIL_HOST_OPTIONS={header}",
    )
    return _Tree(
        HostTree(FIRMWARE_DIR, folder, cmake), work, build_root / f"{project.name}-{VIRTUAL_PREFIX}{chip}"
    )


def _prepare(project: IdfProject, options: Options, version: str, tree: _Tree) -> None:
    shutil.rmtree(tree.work / "stand-ins", ignore_errors=True)
    _write(tree.work / "product_options.h", options_header(options.of_project))
    components = " ".join(f'"{path.resolve()}"' for path in project.components)
    _write(
        tree.work / "product.cmake",
        f'set(PRODUCT_NAME "{project.name}")\n'
        f'set(PRODUCT_DIR "{project.folder}")\n'
        f'set(PRODUCT_VERSION "{version}")\n'
        f"set(PRODUCT_COMPONENTS {components})\n{options.cmake}",
    )


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.is_file() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")

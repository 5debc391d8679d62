# SPDX-License-Identifier: Apache-2.0
"""Build a product for a virtual board, or say what it needs that the host has not."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from hil.base.errors import ConfigError
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
from hil.boards.firmware.failure import RefusedSourcesError
from hil.boards.firmware.image import FLASH_SIZE, build_image_dir
from hil.boards.firmware.product.chip import build_for_chip
from hil.boards.firmware.product.needs import Needs, find_needs, told
from hil.boards.firmware.product.project import (
    Configuration,
    Project,
    configure,
    find_project,
    project_version,
    sdkconfig_header,
)
from hil.boards.firmware.product.stubs import write_stubs
from hil.store.files import short_path

TICK = "FREERTOS_HZ"
FLASH_SIZES = ("1MB", "2MB", "4MB", "8MB", "16MB")
_TABLES = tuple(
    f"PARTITION_TABLE_{name}" for name in ("SINGLE_APP", "SINGLE_APP_LARGE", "TWO_OTA", "TWO_OTA_LARGE")
)
Publish = Callable[[Path], Path]


@dataclass(frozen=True)
class Coverage:
    """What a product takes of ESP-IDF and the host: headers and calls that are here, and what is not."""

    project: Project
    needs: Needs
    headers: tuple[str, ...]
    calls: tuple[str, ...]

    @property
    def complete(self) -> bool:
        return not (self.needs.any or self.project.from_registry)

    def lines(self) -> list[str]:
        """Return the report that ``hil build --report`` prints."""
        missing = self.needs
        lines = [
            f"{self.project.name}: {missing.sources} sources in {len(self.project.components)} components",
            f"headers: {len(self.headers)} on the host, {len(missing.headers)} not",
            f"calls: {len(self.calls)} on the host, {len(missing.calls)} not",
        ]
        lines += [f"  {line}" for line in told(missing, self.project.folder)]
        lines += [
            f"  component {name}, from the registry, which is not fetched"
            for name in self.project.from_registry
        ]
        return lines


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
    report: bool = False,
    stubs: Path | None = None,
    build_root: Path = BUILD_ROOT,
    tree_root: Path | None = None,
    publish: Publish | None = None,
    of_git: str | None = None,
) -> Path:
    """Build the ESP-IDF project in ``folder``; return the build folder, to be flashed as any.

    Chips are built by ESP-IDF, virtual boards against firmware/host. ``sdkconfig`` is a file of options that
    come after the project's own. With ``report`` its coverage is said; with ``stubs`` a component for what is
    missing is written there. The objects of the host are in ``tree_root`` (build_root where it is None), for
    products to share. ``publish`` is called with the folder before another build may change it, and names
    what is returned. ``of_git`` is git's word for sources that lie outside of it.

    Raises:
        RefusedSourcesError: no project, or something that the host has not (each header, who includes it,
            what is used of it).
        ConfigError: an unknown target, a missing tool, or a build that failed.
    """
    if target in IMAGE_TARGETS:
        if report or stubs:
            raise ConfigError(
                f"--report and --stubs are of virtual boards; for {target} ESP-IDF has all that it has.",
                next_step="leave them out, or choose one of: " + ", ".join(VIRTUAL_TARGETS) + ".",
            )
        return build_for_chip(
            folder, target, say=say, sdkconfig=sdkconfig, build_root=build_root, publish=publish
        )
    if target not in VIRTUAL_TARGETS:
        raise ConfigError(
            f"a product is not built for {target!r}.",
            next_step=f"use one of: {', '.join((*VIRTUAL_TARGETS, *IMAGE_TARGETS))}.",
        )
    chip = target.removeprefix(VIRTUAL_PREFIX)
    project = find_project(folder, chip=chip)
    configuration = configure(project, FIRMWARE_DIR / "host", sdkconfig, chip=chip, say=say)
    version = project_version(project, configuration.values, of_git=of_git)
    tree = _tree(project, configuration, chip, build_root, tree_root or build_root)
    with locked(tree.host.lock, project.name, say):
        _prepare(project, configuration, version, tree)
        tree.host.configure()
        for what in read_record(tree.work / "record").left_out:
            say(f"no effect here: {what}")
        needs = find_needs(tree.host.folder / "compile_commands.json", project.components, tree.work)
        if stubs and needs.any:
            write_stubs(needs, stubs)
            say(f"Wrote stubs for {len(needs.calls)} calls to {stubs}; add it to EXTRA_COMPONENT_DIRS")
        if needs.any or project.from_registry:
            _refuse(Coverage(project, needs, (), ()), say, report=report)
        say(f"Building {project.name} {version} in {short_path(tree.image_dir)}")
        tree.host.build("product")
        coverage = Coverage(project, needs, *_used(tree))
        if report:
            say("\n".join(coverage.lines()))
        build_image_dir(
            tree.host.folder / "product.elf",
            tree.image_dir,
            chip=chip,
            project=project.name,
            version=version,
            tick_hz=int(configuration.values[TICK]),
            partitions_csv=partitions_csv(project, configuration, say),
            table_offset=int(configuration.values["PARTITION_TABLE_OFFSET"], 0),
            flash_size=_flash_size(configuration),
        )
        return publish(tree.image_dir) if publish else tree.image_dir


def partitions_csv(project: Project, configuration: Configuration, say: Say) -> Path:
    """Return the table that a product is flashed with, and say where it is not what idf.py would take."""
    values, given = configuration.values, configuration.given
    named = project.folder / values.get("PARTITION_TABLE_CUSTOM_FILENAME", "partitions.csv")
    if values.get("PARTITION_TABLE_CUSTOM") == "y":
        if not named.is_file():
            raise RefusedSourcesError(
                f"CONFIG_PARTITION_TABLE_CUSTOM_FILENAME names {named}, which is not there."
            )
        return named
    chosen = next((name for name in sorted(given) if name in _TABLES and values.get(name) == "y"), "")
    if not chosen and named.is_file():
        say(f"partitions: {named} is taken; idf.py does so with CONFIG_PARTITION_TABLE_CUSTOM=y alone")
        return named
    instead = f" instead of CONFIG_{chosen}" if chosen else ""
    say(f"partitions: hil's own two slots{instead}")
    return FIRMWARE_DIR / "partitions.csv"


def _flash_size(configuration: Configuration) -> str:
    """Return the flash that a product is for; a virtual board has room for 16 MB. Raises ConfigError."""
    size = configuration.values.get("ESPTOOLPY_FLASHSIZE", FLASH_SIZE)
    if size not in FLASH_SIZES:
        raise RefusedSourcesError(
            f"CONFIG_ESPTOOLPY_FLASHSIZE is {size}: a virtual board has {FLASH_SIZES[-1]} at most.",
            next_step="build the table for it with --sdkconfig, or measure on a chip.",
        )
    return max(size, FLASH_SIZE, key=FLASH_SIZES.index)


def _refuse(coverage: Coverage, say: Say, *, report: bool) -> None:
    lines = coverage.lines()
    if report:
        say("\n".join(lines))
    missing = lines[3:]
    fetch = "fetch the components into managed_components: idf.py reconfigure, where ESP-IDF is"
    stubs = "hil build -C … --stubs DIR writes a component that answers these calls, to be filled in"
    steps = [fetch] * bool(coverage.project.from_registry) + [stubs] * coverage.needs.any
    raise RefusedSourcesError(
        f"{coverage.project.name} needs what the host has not:\n" + "\n".join(missing),
        next_step="; ".join(steps) + ".",
    )


def _tree(
    project: Project, configuration: Configuration, chip: str, build_root: Path, tree_root: Path
) -> _Tree:
    tick_hz = int(configuration.values[TICK])
    if tick_hz not in TICKS_HZ:
        raise RefusedSourcesError(
            f"CONFIG_FREERTOS_HZ={tick_hz}: a virtual board ticks at one of {', '.join(map(str, TICKS_HZ))}.",
            next_step="set one of these in sdkconfig.defaults.",
        )
    host_config = {name: value for name, value in configuration.changed.items() if name != TICK}
    key = hashlib.sha256(repr((chip, tick_hz, sorted(host_config.items()))).encode()).hexdigest()[:8]
    folder = tree_root / f"product-{chip}-{key}"
    work = build_root / "products" / f"{project.name}-{chip}"
    config_dir = folder.with_name(f"{folder.name}.config")
    _write(config_dir / "host_options.h", sdkconfig_header(host_config, configuration.texts))
    options = [
        f"-DIDF_TARGET={chip}",
        f"-DHIL_TICK_HZ={tick_hz if tick_hz != 1000 else ''}",
        f"-DHIL_PRODUCT={work / 'product.cmake'}",
        f"-DHIL_HOST_OPTIONS={config_dir / 'host_options.h'}",
    ]
    return _Tree(
        HostTree(FIRMWARE_DIR, folder, tuple(options)),
        work,
        build_root / f"{project.name}-{VIRTUAL_PREFIX}{chip}",
    )


def _prepare(project: Project, configuration: Configuration, version: str, tree: _Tree) -> None:
    shutil.rmtree(tree.work, ignore_errors=True)
    options = tree.work / "product_options.h"
    _write(options, sdkconfig_header(configuration.of_project, configuration.texts))
    lines = [
        f'set(PRODUCT_NAME "{project.name}")',
        f'set(PRODUCT_DIR "{project.folder}")',
        f'set(PRODUCT_VERSION "{version}")',
        f'set(PRODUCT_OPTIONS "{options}")',
        f'set(HIL_RECORD "{tree.work / "record"}")',
        f"set(PRODUCT_COMPONENTS {_quoted(project.components)})",
        *_cmake_options(configuration.values),
    ]
    _write(tree.work / "product.cmake", "\n".join(lines) + "\n")


def _quoted(paths: tuple[Path, ...]) -> str:
    return " ".join(f'"{path.resolve()}"' for path in paths)


def _cmake_options(values: Mapping[str, str]) -> list[str]:
    """Return the options as ESP-IDF gives them to CMake: y, a value, or nothing."""
    return [
        f'set(CONFIG_{name} "{value}")'
        for name, value in sorted(values.items())
        if value != "n" and '"' not in value
    ]


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.is_file() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def _used(tree: _Tree) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the headers and the calls of firmware/host/idf that the product's objects use."""
    objects = sorted((tree.host.folder / "product").glob("**/*.o")) + sorted(
        (tree.host.folder / "CMakeFiles").glob("__product_*/**/*.o")
    )
    library = next(tree.host.folder.glob("libidf_host-*.a"))
    provided = _symbols(library, "--defined-only")
    wanted = (
        set[str]().union(*(_symbols(path, "--undefined-only") for path in objects)) if objects else set[str]()
    )
    done = subprocess.run(
        ["ninja", "-C", str(tree.host.folder), "-t", "deps"], capture_output=True, text=True, check=False
    )
    return tuple(sorted(_headers(done.stdout))), tuple(sorted(wanted & provided))


def _headers(deps: str) -> set[str]:
    """Return what the product's objects depend on below an include folder of firmware/host/idf."""
    found: set[str] = set()
    of_product = False
    for line in deps.splitlines():
        if line and not line.startswith(" "):
            of_product = "__product_" in line
        elif of_product and "/host/idf/" in line and "/include/" in line:
            found.add(line.rpartition("/include/")[2])
    return found


def _symbols(path: Path, which: str) -> set[str]:
    done = subprocess.run(
        ["nm", which, "--format=just-symbols", str(path)], capture_output=True, text=True, check=False
    )
    return {line.strip() for line in done.stdout.splitlines() if line.strip() and not line.endswith(":")}

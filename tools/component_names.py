# SPDX-License-Identifier: Apache-2.0
"""Write firmware/esp_hil/names.h and trace_names.h: what the component's sources define begins with hil_.

A product links its own code with the component's, and the agent's short names may be the product's as well.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from hil.base.paths import TOOL_FIRMWARE

COMPONENTS = TOOL_FIRMWARE / "components"
HEADERS = TOOL_FIRMWARE / "esp_hil"
PARTS = ("agent", "benches", "http_link", "iperf", "link", "load", "mqtt_link", "rtos", "trace")
OF_THE_KERNEL = ("hooks.c", "names.c", "ring.c")  # of trace: the host's kernel has them itself

_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
_NOT_FIRST = r"(?!static\b|typedef\b|extern\b|return\b|else\b|FORCE_INLINE_ATTR\b|__attribute__)"
_HEAD = rf"^{_NOT_FIRST}[A-Za-z_][\w \*]*?[ \*]"
_FUNCTION = re.compile(_HEAD + r"(?:IRAM_ATTR )?([a-z]\w+)\([^;{}]*\) \{$", re.MULTILINE)
_VARIABLE = re.compile(_HEAD + r"([a-z]\w+)(?:\[[^\]]*\])*(?: = .*|;)$", re.MULTILINE)
_GENERATED = ("bench_table", "bench_table_length")  # by bench_table.cmake

_TOP = """\
/* SPDX-License-Identifier: Apache-2.0 */
/* Made by `python -m tools.component_names`; do not edit.
 *
 * Included before each source of the component, so that a product may have a `link_up` or a `record_begin` of
 * its own. */
#pragma once

"""


def sources(components: Path) -> Iterator[Path]:
    """Yield the C files that the component may be made of, but what the kernel calls."""
    for part in PARTS:
        for path in (components / part).rglob("*.c"):
            if part != "trace" or path.name not in OF_THE_KERNEL:
                yield path


def global_names(files: Iterable[Path]) -> set[str]:
    """Return the functions and variables with external linkage that C files define."""
    found: set[str] = set()
    for source in files:
        text = _COMMENT.sub("", source.read_text(encoding="utf-8"))
        text = re.sub(r" +$", "", text, flags=re.MULTILINE)
        found.update(match[1] for pattern in (_FUNCTION, _VARIABLE) for match in pattern.finditer(text))
    return found


def headers(components: Path = COMPONENTS) -> dict[str, str]:
    """Return the content of both headers by their names."""
    kernel = global_names(components / "trace" / name for name in OF_THE_KERNEL)
    own = global_names(sources(components)) | set(_GENERATED)
    return {"names.h": _text(own), "trace_names.h": _text(kernel)}


def _text(names: set[str]) -> str:
    return _TOP + "".join(f"#define {name} hil_{name}\n" for name in sorted(names))


def main() -> None:
    for name, text in headers().items():
        (HEADERS / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()

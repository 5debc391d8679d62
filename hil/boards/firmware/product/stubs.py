# SPDX-License-Identifier: Apache-2.0
"""Stubs for what a product needs and the host has not: a start that its author fills in.

A stub component answers each call with what ``answers.h`` records for it, 0 (``ESP_OK``) until somebody
writes what the real part answered.
"""

from __future__ import annotations

from pathlib import Path

from hil.base.errors import ConfigError
from hil.boards.firmware.product.needs import Needs

_HEAD = "/* What the host has not, as hil build --stubs began it: fill in types and answers. */\n"


def write_stubs(needs: Needs, folder: Path) -> list[Path]:
    """Write a component with these stubs to ``folder``; return its files.

    Raises:
        ConfigError: the folder holds something already.
    """
    if folder.exists() and any(folder.iterdir()):
        raise ConfigError(f"{folder} is not empty.", next_step="name a new folder for the stubs.")
    headers = list(needs.headers) or ["host_stubs.h"]
    files = {f"include/{name}": '#pragma once\n#include "host_stubs_all.h"\n' for name in headers}
    files["include/host_stubs_all.h"] = f"#pragma once\n{_HEAD}{needs.declared()}"
    files["answers.h"] = _answers(needs)
    files["host_stubs.c"] = _definitions(needs)
    files["CMakeLists.txt"] = 'idf_component_register(SRCS "host_stubs.c" INCLUDE_DIRS "include")\n'
    written = []
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        written.append(path)
    return written


def _answers(needs: Needs) -> str:
    lines = [_HEAD.rstrip()]
    lines += [f"#define ANSWER_OF_{name} 0 /* ESP_OK */" for name in needs.calls]
    return "\n".join(lines) + "\n"


def _definitions(needs: Needs) -> str:
    lines = [_HEAD.rstrip(), '#include "answers.h"', '#include "host_stubs_all.h"']
    lines += [f"int {name}() {{\n    return ANSWER_OF_{name};\n}}" for name in needs.calls]
    return "\n".join(lines) + "\n"

# SPDX-License-Identifier: Apache-2.0
"""Finish a release's two lists: add Python's licences, and drop what differs between two builds.

usage: sbom.py PYTHON_LIST ENVIRONMENT_LIST NPM_LIST   Writes the first and the last anew. The second is what
cyclonedx-py says of installed packages with the texts of licences: a list from lock files knows no licence.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any


def name_of(component: dict[str, Any]) -> str:
    return re.sub(r"[-_.]+", "-", component["name"]).lower()


def declared(component: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the licences of a package: SPDX, else classifiers, else the first line of a text."""
    found = component.get("licenses", [])
    spdx = [one for one in found if "expression" in one or "id" in one["license"]]
    named = [one for one in found if "text" not in one.get("license", {})]
    texts = [one["license"]["text"]["content"].splitlines()[0] for one in found if one not in named]
    return spdx or named or [{"license": {"name": text, "acknowledgement": "declared"}} for text in texts[:1]]


def main(python: Path, environment: Path, npm: Path) -> None:
    installed = {name_of(one): one for one in json.loads(environment.read_text())["components"]}
    listed = json.loads(python.read_text())
    for component in listed["components"]:
        component["licenses"] = declared(installed.get(name_of(component), {}))
        if not component["licenses"]:
            sys.exit(f"{component['name']} {component['version']} is not installed, or declares no licence.")
    python.write_text(json.dumps(listed, indent=2, sort_keys=True) + "\n")
    listed = json.loads(npm.read_text())
    del listed["serialNumber"], listed["metadata"]["timestamp"]
    npm.write_text(json.dumps(listed, indent=2) + "\n")


main(*map(Path, sys.argv[1:]))

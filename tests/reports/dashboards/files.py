# SPDX-License-Identifier: Apache-2.0
"""The dashboards as the files that Grafana imports."""

from __future__ import annotations

import json
from pathlib import Path

from grafana_foundation_sdk.cog.encoder import JSONEncoder

from tests.reports.dashboards.latency import latency
from tests.reports.dashboards.overview import overview
from tests.reports.dashboards.racks import racks

FOLDER = Path(__file__).resolve().parents[3] / "docs" / "operate" / "metrics" / "dashboards"


def rendered() -> dict[str, str]:
    """Return the content of each file by its name."""
    made = {"overview.json": overview(), "latency.json": latency(), "racks.json": racks()}
    return {name: _text(one) for name, one in made.items()}


def _text(made: object) -> str:
    return json.dumps(made, cls=JSONEncoder, indent=2, sort_keys=True, ensure_ascii=False) + "\n"

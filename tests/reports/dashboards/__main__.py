# SPDX-License-Identifier: Apache-2.0
"""Writes docs/operate/metrics/dashboards: python -m tests.reports.dashboards"""

from __future__ import annotations

from tests.reports.dashboards.files import FOLDER, rendered

if __name__ == "__main__":
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, text in rendered().items():
        (FOLDER / name).write_text(text, encoding="utf-8")
        print(FOLDER / name)

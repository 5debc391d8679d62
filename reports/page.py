# SPDX-License-Identifier: Apache-2.0
"""The frame of a page of the report: one style, no script, nothing from elsewhere."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable
from html import escape
from pathlib import Path

STYLE = Path(__file__).parent / "site" / "style.css"
_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="data:,">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<main>
{body}
</main>
</body>
</html>
"""


def frame(title: str, body: Iterable[str], *, more_style: str = "") -> str:
    """Return a page of ``body`` (HTML; empty parts are left out). Its policy allows its own style only."""
    style = STYLE.read_text(encoding="utf-8") + more_style
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = (
        f"default-src 'none'; img-src data:; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    )
    return _PAGE.format(policy=policy, title=escape(title), style=style, body="\n".join(filter(None, body)))

# SPDX-License-Identifier: Apache-2.0
"""Published studies: their tables, what is wrong with them, and what of ours each row compares with.

``reports/studies/<study>/<study>.yaml`` holds one; docs/reference/studies.md explains the keys.
"""

from hil.reports.studies.declaration.loader import (
    KEPT_FOLDER,
    PUBLISHED,
    SIZES,
    load_study,
    study_files,
    study_of_suite,
)
from hil.reports.studies.declaration.types import (
    Application,
    Background,
    Claim,
    ClaimTest,
    Comparison,
    Row,
    Study,
    Table,
)

__all__ = [
    "KEPT_FOLDER",
    "PUBLISHED",
    "SIZES",
    "Application",
    "Background",
    "Claim",
    "ClaimTest",
    "Comparison",
    "Row",
    "Study",
    "Table",
    "load_study",
    "study_files",
    "study_of_suite",
]

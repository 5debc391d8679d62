"""A published study beside our run of it: tables, answers, claims; as text, Markdown, JSON and a page.

Everything is computed from the run's records and thresholds/reference/<study>.yaml; see docs/studies.md.
"""

from reports.reproduction.build import (
    FILES,
    StoredStudy,
    files_of,
    page_of,
    reproduce,
    reproduce_suite,
    stored_studies,
)
from reports.reproduction.terminal import print_documents

__all__ = [
    "FILES",
    "StoredStudy",
    "files_of",
    "page_of",
    "print_documents",
    "reproduce",
    "reproduce_suite",
    "stored_studies",
]

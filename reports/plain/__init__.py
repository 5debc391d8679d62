# SPDX-License-Identifier: Apache-2.0
"""A judged run as plain files that other tools read: CSV, JUnit XML, OpenMetrics text."""

from hil.reports.plain.writing import FILES, write_plain

__all__ = ["FILES", "write_plain"]

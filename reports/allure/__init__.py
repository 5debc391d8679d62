# SPDX-License-Identifier: Apache-2.0
"""A run as Allure results: one result a case and board, with the verdict, charts, samples and console."""

from hil.reports.allure.completion import complete_results
from hil.reports.allure.outcome import CATEGORIES

__all__ = ["CATEGORIES", "complete_results"]

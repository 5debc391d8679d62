"""A run as Allure results: one result a case and board, with the verdict, charts, samples and console."""

from hil.reports.allure.categories import CATEGORIES
from hil.reports.allure.completion import complete_results

__all__ = ["CATEGORIES", "complete_results"]

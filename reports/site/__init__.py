# SPDX-License-Identifier: Apache-2.0
"""The report site OUT/report: first page, Allure test report, trend page. It needs no other host."""

from hil.reports.site.build import build_site, trend_for

__all__ = ["build_site", "trend_for"]

# SPDX-License-Identifier: Apache-2.0
"""What the trend page shows, computed from the histories: docs/reference/schema/trend.schema.json."""

from hil.reports.trend.build import Trend, trend_of, write_trend
from hil.reports.trend.runs import TrendSources, read_sources

__all__ = ["Trend", "TrendSources", "read_sources", "trend_of", "write_trend"]

# SPDX-License-Identifier: Apache-2.0
"""The Grafana dashboards of the docs as code; ``python -m tests.reports.dashboards`` writes them."""

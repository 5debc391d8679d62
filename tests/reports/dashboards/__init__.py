"""The Grafana dashboards of the docs as code; ``python -m tests.reports.dashboards`` writes them."""

"""The Grafana dashboards of docs/metrics as code; ``python -m tests.reports.dashboards`` writes them."""

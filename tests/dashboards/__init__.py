"""The Grafana dashboards of docs/metrics as code; ``python -m tests.dashboards`` writes them."""

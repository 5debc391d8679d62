# SPDX-License-Identifier: Apache-2.0
"""A published study beside our run of it: tables, answers, claims; as text, Markdown, JSON and a page.

Everything is computed from the run's records and the study's file.
docs/explain/studies.md shows it.
"""

# SPDX-License-Identifier: Apache-2.0
"""Golden files: what today's code makes of one stored run and one stored history. README.md has the rule."""

# SPDX-License-Identifier: Apache-2.0
"""Reports: each renders records and verdicts from disk; none decides anything."""

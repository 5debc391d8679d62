# SPDX-License-Identifier: Apache-2.0
"""A simulated history with changes planted in it, and the report that is to find them: ``make demo``."""

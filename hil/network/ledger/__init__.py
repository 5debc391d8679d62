# SPDX-License-Identifier: Apache-2.0
"""The loss ledger: every message has a number, and each that is missing has an owner."""

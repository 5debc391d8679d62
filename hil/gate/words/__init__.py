# SPDX-License-Identifier: Apache-2.0
"""The sentences that a person reads of a verdict."""

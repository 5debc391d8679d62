# SPDX-License-Identifier: Apache-2.0
"""A series against its absolute limit."""

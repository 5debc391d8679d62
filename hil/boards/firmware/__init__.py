# SPDX-License-Identifier: Apache-2.0
"""Firmware as it comes from a build: folders, bundles, and what is known of their origin."""

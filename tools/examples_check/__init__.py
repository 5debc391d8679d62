# SPDX-License-Identifier: Apache-2.0
"""ESP-IDF's examples, built for the host as they are."""

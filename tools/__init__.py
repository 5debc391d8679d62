# SPDX-License-Identifier: Apache-2.0
"""Programs for people, not tests: benches, simulations, campaigns, checks against ESP-IDF, pictures."""

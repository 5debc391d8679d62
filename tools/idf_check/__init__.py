# SPDX-License-Identifier: Apache-2.0
"""`make idf-check`: the firmware and `firmware/host/idf` against a real ESP-IDF."""

"""`make idf-check`: the firmware and `firmware/host/idf` against a real ESP-IDF."""

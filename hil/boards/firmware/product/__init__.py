# SPDX-License-Identifier: Apache-2.0
"""Somebody's ESP-IDF project, built for virtual boards against firmware/host/idf."""

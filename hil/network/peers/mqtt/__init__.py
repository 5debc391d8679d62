# SPDX-License-Identifier: Apache-2.0
"""Peers of the benches `delivery` and `echo`: a broker of the case's own, captures, faults."""

"""Peers of the benches `delivery` and `echo`: a broker of the case's own, captures, faults."""

# SPDX-License-Identifier: Apache-2.0
"""Measuring a product from outside: by what its console prints and by what comes to the rack's broker.

Nothing is asked of the product's code. A bench of this sort is a file ``<stem>.probe.yaml`` where another has
``<stem>.c``; its times are the host's.
"""

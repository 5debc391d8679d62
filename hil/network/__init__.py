# SPDX-License-Identifier: Apache-2.0
"""The network around the boards: processes on the rack's host, certificates, broker, access point."""

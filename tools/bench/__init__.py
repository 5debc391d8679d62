# SPDX-License-Identifier: Apache-2.0
"""The figures that README and docs quote, and the commands that print them. Not collected by pytest."""

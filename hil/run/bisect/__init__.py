# SPDX-License-Identifier: Apache-2.0
"""Which commit changed a figure: bisection by runs of `hil run`."""

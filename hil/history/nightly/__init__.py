# SPDX-License-Identifier: Apache-2.0
"""What happens at night: change points of the history, and the search for the commit that made one."""

# SPDX-License-Identifier: Apache-2.0
"""Values of a team's own pytest suite: the plugin's file becomes records, and its calls become limits."""

# SPDX-License-Identifier: Apache-2.0
"""Tests of the plugin's own need all of it, with a rack or without; what it does stands in fixtures/."""

from hil.fixtures.entry import PLUGINS

pytest_plugins = PLUGINS

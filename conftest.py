# SPDX-License-Identifier: Apache-2.0
"""The fixture plugins of this project; what they do stands in fixtures/."""

pytest_plugins = (
    "hil.fixtures.options",
    "hil.fixtures.board.embedded",
    "hil.fixtures.measure",
    "hil.fixtures.allure",
    "hil.fixtures.reporting",
)

"""The fixture plugins of this project; what they do stands in fixtures/."""

pytest_plugins = (
    "fixtures.options",
    "fixtures.board.embedded",
    "fixtures.measure",
    "fixtures.allure",
    "fixtures.reporting",
)

# SPDX-License-Identifier: Apache-2.0
"""Products, with tests of benches of their own, which `hil run` collects and this suite does not."""

collect_ignore_glob = ["*"]

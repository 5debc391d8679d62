# SPDX-License-Identifier: Apache-2.0
"""A rack without hardware: virtual boards, the air between them and the access point, namespaces."""

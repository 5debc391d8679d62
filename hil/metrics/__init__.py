# SPDX-License-Identifier: Apache-2.0
"""What a record says: columns, statistics, metrics in their units, boot values over sessions."""

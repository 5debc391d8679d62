"""What a record says: columns, statistics, metrics in their units, boot values over sessions."""

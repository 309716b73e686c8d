"""CSV and its relatives: bytes -> records and their cells."""

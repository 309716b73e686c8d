"""JSON: lines and documents -> records and their cells."""

"""The records of raw files, cut out of their bytes."""

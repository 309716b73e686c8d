"""Where raw files are: on this machine, on object stores, in tables."""

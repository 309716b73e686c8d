"""What the cells of a raw record mean."""

"""Raw cells -> instants: numbers in a unit, text in a format, local clocks."""

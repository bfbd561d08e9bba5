"""Two compiles of a program compared: what matches, what costs more or less, and why."""

"""Element types that TPUs do not compute with, as others that hold the same numbers."""

"""Reading, analysing and reporting on compiled XLA programs (HLO)."""

__version__ = "0.1.0"

"""A compiled HLO module as data."""

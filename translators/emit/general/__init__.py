"""Emitted functions of several sizes -> one function that reads the sizes off its arguments."""

"""Compiles a person's functions for TPUs that are not there, so that they can be linted."""

"""Launches that differ from one that is given in their sizes."""

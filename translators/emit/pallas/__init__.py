"""Kernels for TPU in Pallas: what a step of the grid sees of each array, and what it computes."""

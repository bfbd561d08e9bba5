"""Kernels in three hands: Triton kernels, Pallas written by hand, and plain JAX."""

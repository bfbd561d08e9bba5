"""Kernels as an op graph: typed SSA with structured control flow."""

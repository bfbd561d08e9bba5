"""Triton kernels called from JAX programs."""

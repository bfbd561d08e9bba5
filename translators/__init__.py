"""Translators from GPU kernels to TPU programs."""

"""The proof that a translated kernel computes what the kernel does."""

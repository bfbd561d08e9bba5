"""Which elements of which array a kernel touches, from its pointer arithmetic."""

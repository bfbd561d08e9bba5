"""From a Triton kernel and a launch of it to the op graph."""

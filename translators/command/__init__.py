"""What the command `triton2pallas` does, step by step."""

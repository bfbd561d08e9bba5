"""Legal graphs in, source text out."""

"""Report formats: one outcome in, text out, one format a module."""

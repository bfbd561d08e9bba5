"""Facts about a module, computed once; no opinions."""

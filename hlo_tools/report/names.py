"""The names of the formats, for those who have yet to load one."""

FORMATS = ("text", "concise", "json", "sarif", "github", "junit")
READABLE_FORMATS = frozenset({"text", "concise"})
"""Those that are for people to read as they are."""

"""The names of the formats, for those who have yet to load one."""

FORMATS = ("text", "concise", "json", "sarif", "github", "junit", "html")
READABLE_FORMATS = frozenset({"text", "concise"})
"""Those that are for people to read as they are."""
PROFILED_FORMATS = frozenset({"html"})
"""Those that draw what a step looks like."""

MAX_PROFILES = 4
"""How many steps a report draws, the longest of them: of more, the profiles need not be kept."""

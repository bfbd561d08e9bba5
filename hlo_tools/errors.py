"""The errors that a user's input or configuration can cause.

Anything that is wrong with what the user gave raises a subclass of `InputError`; any other
exception is a bug in this package.
"""


class InputError(Exception):
    """Input that cannot be used, with the place where that was seen.

    Args:
      message: one plain sentence without a trailing full stop.
      path: the file, or `-` for standard input; `None` where no file is involved.
      line: 1-based line in the file.
      column: 1-based column in the line.
    """

    def __init__(
        self,
        message: str,
        *,
        path: str | None = None,
        line: int | None = None,
        column: int | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.path = path
        self.line = line
        self.column = column

    def __str__(self) -> str:
        parts = [str(part) for part in (self.path, self.line, self.column) if part is not None]
        return ":".join([*parts, f" {self.message}"]) if parts else self.message


class SettingsError(InputError):
    """A configuration file, option or baseline that cannot be used."""

"""What stands in the way of a proof."""

from hlo_tools.errors import InputError


class VerificationError(InputError):
    """A launch on which nothing can be compared, with the reason."""


class TooSlowError(VerificationError):
    """A run that did not end in the time that it was given."""

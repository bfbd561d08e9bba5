"""What can go wrong with a graph that somebody gives."""

from hlo_tools.errors import InputError
from translators.graph.location import SourceLocation


class GraphError(InputError):
    """A graph that breaks a rule, with the op and the kernel's line.

    Args:
      message: one plain sentence without a trailing full stop.
      location: the place in the kernel's source, where known.
    """

    def __init__(self, message: str, location: SourceLocation | None = None) -> None:
        if location is None:
            super().__init__(message)
        else:
            super().__init__(
                message,
                path=location.file,
                line=location.line,
                column=location.column or None,
            )
        self.location = location


class GraphSyntaxError(InputError):
    """Text that is not a graph, with the line and column where that was seen."""


class EvaluationError(GraphError):
    """A kernel that does what no kernel may, such as touching memory out of bounds."""


class UndefinedError(ValueError):
    """What an op cannot do with the values it got; the message is a clause.

    The evaluator turns it into an `EvaluationError` with the op's place.
    """

"""What of a call goes to which parameter of the kernel."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from translators.call.operands import is_array, leaves_of
from translators.triton.launches import LaunchError


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """The values of a call by the parameter that they are for.

    Attributes:
      operands: what is given for parameters that are no constants.
      metaparams: constants that are given, and what only the grid is told, by name.
      defaults: the constants that have a default, by name.
      outputs: the parameter of each output; of an output that is an input, that of the input,
        `name.0` for a member of a tuple.
      repeated: parameters that point once more to an input, which is also an output.
    """

    operands: Mapping[str, Any]
    metaparams: Mapping[str, Any]
    defaults: Mapping[str, Any]
    outputs: tuple[str, ...]
    repeated: Mapping[str, str]


def place(
    kernel: Any,
    args: Sequence[Any],
    named: Mapping[str, Any],
    outputs: int,
    aliases: Mapping[int, int],
) -> Placement:
    """Places arguments as Python would, and outputs in the parameters that are left.

    Up to jax-triton 0.3 every output has a parameter, and `aliases` counts the arrays among the
    arguments. Since 0.4 an output that is an input has none of its own, and `aliases` counts all
    arguments that are no constants, in the order of the parameters. The number of parameters that
    are left says which is meant.

    Args:
      kernel: the jitted function.
      args: the arguments by position.
      named: the arguments by name; a name that is no parameter's is a metaparameter.
      outputs: how many outputs there are.
      aliases: the outputs that are inputs: the number of the input, and that of the output.

    Raises:
      LaunchError: the arguments do not fit the parameters, or the aliases do not fit them.
    """
    function = kernel.fn.__qualname__
    parameters = {parameter.name: parameter for parameter in kernel.params}
    if len(args) > len(parameters):
        raise LaunchError(
            f"`{function}` has {len(parameters)} parameters and is given {len(args)} arguments"
        )
    given = dict(zip(parameters, args, strict=False))
    for name in named:
        if name in given:
            raise LaunchError(f"`{function}` is given `{name}` twice")
    given |= named
    variable = [name for name, parameter in parameters.items() if not parameter.is_constexpr]
    operands = {name: given[name] for name in variable if name in given}
    defaults = {
        name: parameter.default
        for name, parameter in parameters.items()
        if parameter.is_constexpr and parameter.has_default
    }
    metaparams = {name: value for name, value in given.items() if name not in operands}
    left = [name for name in variable if name not in operands]
    needed = [name for name in left if not parameters[name].has_default]
    owners, repeated = _outputs(function, operands, (left, needed), outputs, aliases)
    return Placement(
        operands=operands,
        metaparams=metaparams,
        defaults=defaults,
        outputs=owners,
        repeated=repeated,
    )


def _outputs(
    function: str,
    operands: Mapping[str, Any],
    places: tuple[list[str], list[str]],
    outputs: int,
    aliases: Mapping[int, int],
) -> tuple[tuple[str, ...], dict[str, str]]:
    """The parameter of each output, and the parameters that point to an input once more.

    Args:
      function: the name of the kernel.
      operands: what is given.
      places: the parameters left, with and without those that have a default.
      outputs: how many outputs there are.
      aliases: as `place` takes them.
    """
    known = set(aliases.values())
    if len(known) != len(aliases) or not known <= set(range(outputs)):
        raise LaunchError(f"`input_output_aliases` fits no {outputs} outputs: {dict(aliases)}")
    counts = (outputs, outputs - len(aliases))
    chosen = next((each for each in places if len(each) in counts), None)
    if chosen is None:
        raise LaunchError(
            f"`{function}` has {len(places[0])} parameters without an argument, and there are "
            f"{outputs} outputs" + (f", {len(aliases)} of them inputs" if aliases else "")
        )
    inputs = [leaf for name, value in operands.items() for leaf in leaves_of(name, value)]
    if len(chosen) == outputs:
        inputs = [(name, value) for name, value in inputs if is_array(value)]
    input_of = {output: number for number, output in aliases.items()}
    free = iter(chosen)
    owners: list[str] = []
    repeated: dict[str, str] = {}
    for output in range(outputs):
        number = input_of.get(output)
        if number is None:
            owners.append(next(free))
            continue
        if not 0 <= number < len(inputs) or not is_array(inputs[number][1]):
            raise LaunchError(f"`input_output_aliases` names input {number}, which is no array")
        owners.append(inputs[number][0])
        if len(chosen) == outputs:
            repeated[next(free)] = owners[-1]
    return tuple(owners), repeated

"""A forward and a backward kernel as one function that `jax.grad` goes through.

The forward function keeps its name and what it takes. It becomes a `jax.custom_vjp`: what the
backward kernel reads is saved, and the backward kernel makes the gradients of it.
"""

import ast
import re
import textwrap
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from translators.command.emitting import Part
from translators.command.renaming import renamed
from translators.emit.jax import JaxFunction
from translators.emit.layout import WIDTH, laid_out
from translators.triton.host_arrays import NUMPY_DTYPES
from translators.triton.launches import ArrayArgument
from translators.verify.backward import BackwardNames, guessed_names
from translators.verify.emitted import Emitted
from translators.verify.errors import VerificationError
from translators.verify.subject import Subject

_STEP = "    "
_INTERPRET = "interpret"
_COUNT = ("counts", "count")


class UnwiredError(Exception):
    """A backward kernel is not all of the derivative; the message is a clause."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """A kernel and its backward kernel.

    Attributes:
      forward: the kernel.
      backward: the backward kernel.
      names: what the backward kernel's parameters stand for.
    """

    forward: Part
    backward: Part
    names: BackwardNames

    @property
    def function(self) -> JaxFunction:
        """What is known of the function that is made of both."""
        pallas = self.forward.function.pallas or self.backward.function.pallas
        return replace(self.forward.function, pallas=pallas)

    @property
    def constant(self) -> tuple[str, ...]:
        """The forward kernel's results that have no part in the gradient."""
        used = self.names.cotangents.values()
        return tuple(each for each in self.forward.function.results if each not in used)


def pair_of(forward: Part, backward: Part, read: Collection[str]) -> Pair:
    """Two kernels as a function and its derivative.

    Args:
      forward: the kernel.
      backward: its backward kernel.
      read: the forward kernel's arrays on which its results depend.

    Raises:
      UnwiredError: a gradient is missing, or it is not known what a parameter stands for.
    """
    try:
        names = guessed_names(_subject(forward), _subject(backward))
    except VerificationError as error:
        raise UnwiredError(error.message) from error
    arrays = {each.name: each for each in forward.translation.launch.arrays}
    found = set(names.gradients.values())
    missing = [
        f"`{name}`"
        for name in forward.function.parameters
        if name in read and name not in found and _is_float(arrays[name])
    ]
    if missing:
        raise UnwiredError(f"the backward kernel gives no gradient of {', '.join(missing)}")
    return Pair(forward=forward, backward=backward, names=names)


def wired(text: str, pair: Pair) -> str:
    """The file with the forward function as one that has a derivative.

    Args:
      text: a Python file with the functions of both.
      pair: the kernels.
    """
    return _Wiring(text, pair).text()


class _Wiring:
    """The text of one pair of functions."""

    def __init__(self, text: str, pair: Pair) -> None:
        self._source, self._constant, self._names = text, pair.constant, pair.names
        self._forward, self._backward = pair.forward.function, pair.backward.function
        self._arrays = {each.name: each for each in pair.forward.translation.launch.arrays}
        self._taken = {each.name: each for each in pair.backward.translation.launch.arrays}
        self._node = _function(text, self._forward.name)
        self._parameters = [each.arg for each in self._node.args.args]
        self._own = [each.arg for each in self._node.args.kwonlyargs]
        extra = [_INTERPRET] if pair.function.pallas and _INTERPRET not in self._own else []
        self._options = [*self._own, *extra]
        name, used = self._forward.name, set(re.findall(r"\w+", text))
        self._primal = _free(f"{name}_primal", used)
        self._core = _free(f"_{name}", used)
        self._saving = _free(f"{self._core}_fwd", used)
        self._pulling = _free(f"{self._core}_bwd", used)
        self._local = {*self._parameters, *self._options}

    def text(self) -> str:
        """The file."""
        name = self._forward.name
        lines = [renamed(self._source, name, self._primal).rstrip("\n"), "", ""]
        lines += [*self._core_lines(), "", "", *self._saving_lines(), "", ""]
        lines += [*self._pulling_lines(), "", ""]
        lines += [f"{self._core}.defvjp({self._saving}, {self._pulling})", "", ""]
        lines += self._public_lines()
        return _with_functools("\n".join([*lines, ""]))

    def _all(self) -> str:
        return ", ".join([*self._parameters, *self._options])

    def _calls_primal(self) -> str:
        given = [*self._parameters, *(f"{each}={each}" for each in self._own)]
        return f"{self._primal}({', '.join(given)})"

    def _core_lines(self) -> Iterator[str]:
        first = len(self._parameters)
        places = [str(first + place) for place in range(len(self._options))]
        if places:
            numbers = _tuple(places)
            yield f"@functools.partial(jax.custom_vjp, nondiff_argnums={numbers})"
        else:
            yield "@jax.custom_vjp"
        yield from laid_out(f"def {self._core}({self._all()}):", "")
        yield from laid_out(f"return {self._calls_primal()}", _STEP)

    def _saved(self) -> list[str]:
        """The arrays of the forward kernel that the backward kernel needs."""
        names, parameters = self._names, self._backward.parameters
        needed = [names.saved[name] for name in parameters if name in names.saved]
        # What is only written to begins as zeros, in the shape of what it is the gradient of.
        needed += [
            names.gradients[name]
            for name in parameters
            if name not in names.saved and name not in names.cotangents
        ]
        return list(dict.fromkeys(needed))

    def _saving_lines(self) -> Iterator[str]:
        yield from laid_out(f"def {self._saving}({self._all()}):", "")
        names = {name: _free(name, self._local) for name in self._forward.results}
        given = dict(zip(self._forward.parameters, self._parameters, strict=True))
        yield from laid_out(f"{', '.join(names.values())} = {self._calls_primal()}", _STEP)
        results = list(names.values())
        returned = results[0] if len(results) == 1 else _tuple(results)
        saved = _tuple([{**given, **names}[each] for each in self._saved()])
        yield from laid_out(f"return {returned}, {saved}", _STEP)

    def _pulling_lines(self) -> Iterator[str]:
        backward, names, results = self._backward, self._names, self._forward.results
        local = set(self._options)
        residuals, cotangents = _free("residuals", local), _free("cotangents", local)
        given = ", ".join([*self._options, residuals, cotangents])
        yield from laid_out(f"def {self._pulling}({given}):", "")
        saved = {name: _free(name, local) for name in self._saved()}
        if saved:
            yield from laid_out(f"{_unpacked(saved.values())} = {residuals}", _STEP)
        pulled = {result: _free(name, local) for name, result in names.cotangents.items()}
        left = [pulled.get(result, "_") for result in results]
        whole = left[0] if len(results) == 1 else _unpacked(left)
        yield from laid_out(f"{whole} = {cotangents}", _STEP)
        passed = [self._argument(name, pulled, saved) for name in backward.parameters]
        found = {name: _free(name, local) for name in backward.results}
        options = [f"{each}={each}" for each in backward.scalars if each in self._own]
        if backward.pallas:
            options.append(f"{_INTERPRET}={_INTERPRET}")
        called = f"{backward.name}({', '.join([*passed, *options])})"
        yield from laid_out(f"{', '.join(found.values())} = {called}", _STEP)
        wished = {of: self._gradient(name, of, found) for name, of in names.gradients.items()}
        returned = [wished.get(name, "None") for name in self._forward.parameters]
        yield from laid_out(f"return {_tuple(returned)}", _STEP)

    def _argument(self, name: str, cotangents: Mapping[str, str], saved: Mapping[str, str]) -> str:
        """What the backward kernel takes for a parameter."""
        names, wanted = self._names, self._taken[name]
        if name in names.cotangents:
            result = names.cotangents[name]
            return cotangents[result] + _cast(self._arrays[result], wanted)
        if name in names.saved:
            of = names.saved[name]
            return saved[of] + _cast(self._arrays[of], wanted)
        like = saved[names.gradients[name]]
        return f"jnp.zeros({like}.shape, jnp.{NUMPY_DTYPES[wanted.dtype].name})"

    def _gradient(self, name: str, of: str, found: Mapping[str, str]) -> str:
        """A result of the backward kernel, as a gradient of an array."""
        return found[name] + _cast(self._taken[name], self._arrays[of])

    def _public_lines(self) -> Iterator[str]:
        signature = ast.unparse(self._node.args).replace("'", '"')
        if self._options != self._own:
            signature += f"{'' if self._own else ', *'}, {_INTERPRET}=False"
        yield from laid_out(f"def {self._forward.name}({signature}):", "")
        doc = ast.get_docstring(self._node, clean=False) or ""
        summary, _, rest = doc.partition("\n")
        told = f"`{self._backward.name}` computes its gradient."
        if self._constant:
            constant = ", ".join(f"`{each}`" for each in self._constant)
            told += f" For that, {constant} {_COUNT[len(self._constant) > 1]} as constant."
        yield f'{_STEP}"""{summary}'
        yield ""
        yield from textwrap.wrap(
            told, WIDTH, initial_indent=_STEP, subsequent_indent=_STEP, break_long_words=False
        )
        yield from rest.splitlines()[:-1]
        yield f'{_STEP}"""'
        yield from laid_out(f"return {self._core}({self._all()})", _STEP)


def _subject(part: Part) -> Subject:
    translation = part.translation
    return Subject(
        launch=translation.launch,
        module=translation.module,
        emitted=Emitted(signature=part.function, call=translation.load()),
    )


def _function(text: str, name: str) -> ast.FunctionDef:
    return next(
        node
        for node in ast.parse(text).body
        if isinstance(node, ast.FunctionDef) and node.name == name
    )


def _tuple(parts: Sequence[str]) -> str:
    return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"


def _unpacked(names: Iterable[str]) -> str:
    """The left side of an assignment of a tuple to names."""
    names = list(names)
    return f"({names[0]},)" if len(names) == 1 else ", ".join(names)


def _is_float(array: ArrayArgument) -> bool:
    return NUMPY_DTYPES[array.dtype].kind not in "biu"


def _cast(given: ArrayArgument, wanted: ArrayArgument) -> str:
    """How an array comes to hold what another one does."""
    if given.dtype == wanted.dtype:
        return ""
    return f".astype(jnp.{NUMPY_DTYPES[wanted.dtype].name})"


def _free(name: str, taken: set[str]) -> str:
    found, number = name, 1
    while found in taken:
        number += 1
        found = f"{name}_{number}"
    taken.add(found)
    return found


def _with_functools(text: str) -> str:
    """The file with the import that `functools.partial` needs."""
    if "functools." not in text:
        return text
    place = re.search(r"^(import|from) ", text, re.MULTILINE)
    assert place is not None
    return f"{text[: place.start()]}import functools\n\n{text[place.start() :]}"

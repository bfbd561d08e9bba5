"""A translated backward kernel against `jax.vjp` of the forward kernel's translation."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from hlo_tools.errors import InputError
from translators.graph.numerics import Array
from translators.triton.host_code import HostCode
from translators.verify.emitted import call
from translators.verify.errors import VerificationError
from translators.verify.evaluation import Case
from translators.verify.gradients import differentiate
from translators.verify.memory import lay_out
from translators.verify.report import Rung, Status
from translators.verify.subject import Subject

BACKWARD = "backward kernel against jax.vjp"

_POINTER = re.compile(r"_?(ptrs?|pointer)$")
_PATTERNS = ("d{}", "d_{}", "{}_grad", "grad_{}", "{}grad", "grad{}", "g_{}")
# Half the digits of the type that gradients are compared in.
_TOLERANCES = {np.dtype(np.float32): 2.0**-12, np.dtype(np.float64): 2.0**-26}
_NARROW_TOLERANCE = 2.0**-4


@dataclass(frozen=True, slots=True, kw_only=True)
class BackwardNames:
    """What the parameters of a backward kernel stand for.

    Attributes:
      cotangents: the forward result whose gradient a parameter brings in, by that parameter.
      gradients: the forward parameter whose gradient a result is, by that result.
      saved: the forward array that a parameter is, a result where it is one, by that parameter.
    """

    cotangents: Mapping[str, str]
    gradients: Mapping[str, str]
    saved: Mapping[str, str]


def guessed_names(forward: Subject, backward: Subject) -> BackwardNames:
    """What the names of a backward kernel's parameters say they are.

    `dx`, `d_x`, `x_grad` and `grad_x` are the gradient of `x`; without regard to case, and to
    `ptr` at the end.

    Raises:
      VerificationError: a parameter's name says nothing, or more than one thing.
    """
    inputs = _by_stem(forward.emitted.signature.parameters)
    outputs = _by_stem(forward.emitted.signature.results)
    signature = backward.emitted.signature
    cotangents: dict[str, str] = {}
    gradients: dict[str, str] = {}
    saved: dict[str, str] = {}
    for name in dict.fromkeys((*signature.parameters, *signature.results)):
        stem = _stem(name)
        meanings: list[tuple[dict[str, str], str]] = []
        if stem in outputs or stem in inputs:
            meanings.append((saved, outputs.get(stem) or inputs[stem]))
        if name in signature.results:
            meanings += [(gradients, inputs[each]) for each in _bases(stem) if each in inputs]
        else:
            meanings += [(cotangents, outputs[each]) for each in _bases(stem) if each in outputs]
        if len(meanings) != 1:
            raise VerificationError(_what_is_needed(name, meanings, forward))
        group, meaning = meanings[0]
        group[name] = meaning
    if not cotangents or not gradients:
        missing = "gradient of a result" if not cotangents else "gradient of a parameter"
        raise VerificationError(f"no parameter of the backward kernel is named as the {missing}")
    return BackwardNames(cotangents=cotangents, gradients=gradients, saved=saved)


def backward_rung(
    forward: Subject,
    backward: Subject,
    case: Case,
    rng: np.random.Generator,
    names: BackwardNames | None = None,
) -> Rung:
    """Compares what a backward kernel gives with `jax.vjp` of the forward kernel.

    Args:
      forward: the forward kernel's launch.
      backward: the backward kernel's.
      case: an input of the forward kernel.
      rng: draws the cotangents.
      names: what the backward kernel's parameters are; guessed from their names if not given.
    """
    try:
        names = names or guessed_names(forward, backward)
        return _compared(forward, backward, case, rng, names)
    except VerificationError as error:
        return Rung(name=BACKWARD, status=Status.SKIPPED, reason=error.message)
    except InputError as error:
        return Rung(name=BACKWARD, status=Status.FAILED, reason=error.message)


def _compared(
    forward: Subject,
    backward: Subject,
    case: Case,
    rng: np.random.Generator,
    names: BackwardNames,
) -> Rung:
    arrays = lay_out(forward.launch).arrays(case.storages)
    signature = forward.emitted.signature
    with HostCode(None, "the forward function fails"):
        given = call(forward.emitted, [arrays[name] for name in signature.parameters], {})
    outputs = dict(zip(signature.results, given, strict=True))
    cotangents = {
        name: rng.integers(-8, 9, array.shape) / 8.0
        for name, array in outputs.items()
        if name in names.cotangents.values()
    }
    wanted = differentiate(
        forward.emitted, arrays, list(dict.fromkeys(names.gradients.values())), cotangents
    )
    known = {**arrays, **outputs}
    views = lay_out(backward.launch).views
    passed: list[Array] = []
    for name in backward.emitted.signature.parameters:
        view = views[name]
        if name in names.cotangents:
            value = cotangents[names.cotangents[name]]
        elif name in names.saved:
            value = known[names.saved[name]]
        else:
            value = np.zeros(view.array.shape)
        if value.shape != view.array.shape:
            raise VerificationError(
                f"`{name}` of the backward kernel has the shape {view.array.shape}, and what it "
                f"stands for {value.shape}"
            )
        passed.append(value.astype(view.dtype))
    with HostCode(None, "the backward function fails"):
        results = call(backward.emitted, passed, {})
    found = dict(zip(backward.emitted.signature.results, results, strict=True))
    return judged(found, wanted, names)


def judged(found: Mapping[str, Array], wanted: Mapping[str, Array], names: BackwardNames) -> Rung:
    """Compares gradients.

    Args:
      found: those of the backward kernel, by its results.
      wanted: those of JAX, by the forward kernel's parameters.
      names: which of these belong together.

    Raises:
      VerificationError: two that do have different shapes.
    """
    worst = 0.0
    for name, parameter in names.gradients.items():
        left, right = found[name].astype(np.float64), wanted[parameter].astype(np.float64)
        if left.shape != right.shape:
            raise VerificationError(
                f"`{name}` has the shape {left.shape}, and `{parameter}` {right.shape}: say which "
                "results are gradients as they are"
            )
        types = (found[name].dtype, wanted[parameter].dtype)
        tolerance = max(_TOLERANCES.get(each, _NARROW_TOLERANCE) for each in types)
        scale = float(np.abs(right).max(initial=0.0))
        with np.errstate(invalid="ignore"):
            error = np.where(left == right, 0.0, np.abs(left - right)) / (scale or 1.0)
        wrong = ~(error <= tolerance)
        if wrong.any():
            measured = np.where(np.isnan(error), np.inf, error)
            index = np.unravel_index(int(np.argmax(measured)), error.shape)
            return Rung(
                name=BACKWARD,
                status=Status.FAILED,
                reason=f"`{name}` is not the gradient of `{parameter}`: {int(wrong.sum())} of "
                f"{wrong.size} elements differ by more than {tolerance:.2g} of the greatest",
                array=name,
                index=tuple(int(each) for each in index),
                expected=f"{right[index]:.9g}",
                found=f"{left[index]:.9g}",
            )
        worst = max(worst, float(np.max(error, initial=0.0)))
    listed = ", ".join(f"`{name}`" for name in names.gradients)
    return Rung(
        name=BACKWARD,
        status=Status.PASSED,
        reason=f"{listed}; worst error {worst:.2g} of the greatest element",
    )


def _stem(name: str) -> str:
    return _POINTER.sub("", name.lower()) or name.lower()


def _by_stem(names: tuple[str, ...]) -> dict[str, str]:
    return {_stem(name): name for name in names}


def _bases(stem: str) -> Iterator[str]:
    """What a name may be the gradient of."""
    found: dict[str, None] = {}
    for pattern in _PATTERNS:
        before, after = pattern.split("{}")
        inner = stem[len(before) : len(stem) - len(after)]
        if inner and pattern.format(inner) == stem:
            found[_stem(inner.strip("_"))] = None
    yield from found


def _what_is_needed(name: str, meanings: list[tuple[dict[str, str], str]], forward: Subject) -> str:
    signature = forward.emitted.signature
    if meanings:
        said = " or ".join(f"`{meaning}`" for _, meaning in meanings)
        return f"`{name}` of the backward kernel may stand for {said}: say which"
    known = ", ".join(f"`{each}`" for each in dict.fromkeys(signature.parameters))
    results = ", ".join(f"`{each}`" for each in signature.results)
    return (
        f"the name `{name}` of the backward kernel does not say what it is: name a parameter of "
        f"the forward kernel ({known}), a result ({results}), or the one it is the gradient of"
    )

"""A kernel and a launch of it -> Triton IR as text, by Triton's own front end and without a GPU."""

import re
import tempfile
from collections.abc import Collection
from pathlib import Path
from typing import Any

from hlo_tools.errors import InputError
from translators.triton.driver import stand_in_driver, target
from translators.triton.element_types import language_dtypes
from translators.triton.launches import (
    Argument,
    ConstantArgument,
    Launch,
    TupleArgument,
    TypeConstant,
)

# Library functions that are worth more as one call than as what they are made of: their bodies
# are long, and say in bit arithmetic what a name says better.
LIBRARY_CALLS = frozenset({"standard.sort_impl", "standard.flip", "random.philox"})

_FUNCTION = re.compile(
    r'^  tt\.func private @"?triton\.language\.([\w.]+?)__[^\n]*?(?=attributes)'
    r"attributes \{noinline = (false)\}",
    re.MULTILINE,
)


def triton_ir(
    kernel: Any, launch: Launch, *, library_calls: Collection[str] = LIBRARY_CALLS
) -> str:
    """The Triton IR of a kernel specialised for a launch, with the place of every op.

    Functions that the kernel calls are inlined, except those of `triton.language` named in
    `library_calls` and those that the kernel's author marked `noinline`.

    Args:
      kernel: the jitted function.
      launch: what it is called with.
      library_calls: functions to keep, named from `triton.language` on.

    Raises:
      InputError: Triton's front end refuses the kernel; at the kernel's line.
    """
    from triton._C.libtriton import ir
    from triton.compiler import ASTSource, make_backend
    from triton.compiler.errors import CompilationError

    from translators.triton.block_pointers import block_pointers

    if kernel.is_gluon():
        raise InputError(
            f"`{launch.kernel.function}` is written in Gluon, which is not supported",
            path=launch.kernel.file,
            line=launch.kernel.line,
        )
    backend = make_backend(target())
    known = {name: value for name, value in launch.options if value is not None}
    options = backend.parse_options(known)
    source = ASTSource(kernel, launch.signature, _constants(launch), {})
    with stand_in_driver(), block_pointers():
        context = ir.context()
        ir.load_dialects(context)
        backend.load_dialects(context)
        try:
            module = source.make_ir(
                target(),
                options,
                backend.get_codegen_implementation(options),
                backend.get_module_map(),
                context,
            )
        except CompilationError as error:
            raise _refusal(launch, error) from error
        module = _keep_calls(module, library_calls, context)
        stages: dict[str, Any] = {}
        backend.add_stages(stages, options, source.language)
        try:
            return str(stages["ttir"](module, {"target": target(), **vars(options)}))
        except RuntimeError as error:
            raise InputError(
                f"Triton's passes fail on the kernel `{launch.kernel.function}`: {error}",
                path=launch.kernel.file,
                line=launch.kernel.line,
            ) from error


def _constants(launch: Launch) -> dict[tuple[int, ...], Any]:
    """The constants by the path to them among the arguments, as Triton names them."""
    types = language_dtypes()

    def live(value: object) -> object:
        return types[value.dtype] if isinstance(value, TypeConstant) else value

    paths: list[tuple[tuple[int, ...], Argument]] = []
    for index, argument in enumerate(launch.arguments):
        if isinstance(argument, TupleArgument):
            paths += [((index, inner), item) for inner, item in enumerate(argument.items)]
        else:
            paths.append(((index,), argument))
    return {
        path: live(argument.value)
        for path, argument in paths
        if isinstance(argument, ConstantArgument)
    }


def _keep_calls(module: Any, names: Collection[str], context: Any) -> Any:
    """The module with those functions marked so that the inliner leaves them."""
    from triton._C.libtriton import ir

    text = str(module)
    spans = [match.span(2) for match in _FUNCTION.finditer(text) if match[1] in names]
    if not spans:
        return module
    for start, end in reversed(spans):
        text = text[:start] + "true" + text[end:]
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory, "kernel.ttir")
        path.write_text(text, encoding="utf-8")
        kept = ir.parse_mlir_module(str(path), context)
    kept.context = context
    return kept


def _refusal(launch: Launch, error: Exception) -> InputError:
    """The front end's error at the line of the kernel, with the innermost reason."""
    innermost: BaseException = error
    while innermost.__cause__ is not None:
        innermost = innermost.__cause__
    reason = getattr(innermost, "error_message", None) or str(innermost)
    node = getattr(error, "node", None)
    line = launch.kernel.line + getattr(node, "lineno", 1) - 1
    column = getattr(node, "col_offset", None)
    return InputError(
        f"Triton refuses the kernel `{launch.kernel.function}`: {' '.join(reason.split())}",
        path=launch.kernel.file,
        line=line,
        column=None if column is None else column + 1,
    )

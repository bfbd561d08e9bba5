"""From an instruction to the line of the user's program that it comes from.

XLA notes places in two ways: a `stack_frame_id` in the metadata that refers to four tables below
the `HloModule` line, or `source_file` and `source_line` in the metadata itself.
"""

import re
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from fnmatch import translate
from functools import cached_property

from hlo_tools.hlo.attributes import parse_string
from hlo_tools.hlo.location import SourceLocation
from hlo_tools.hlo.module import Computation, Instruction, Module

MAX_FRAMES = 500
"""Deeper stacks are cut off: Python's own limit is 1000, and text may hold cycles."""

MAX_SEARCHED = 64
"""How many instructions are looked at to find the place of one that has none."""

_LIBRARY = re.compile(
    r"(?:^|/)(?:site-packages|dist-packages)/"
    r"|(?:^|/)lib(?:32|64)?/python3\.\d+t?/|(?:^|/)python3\d+/lib/"
    r"|(?:^|/)third_party/py/"
    r"|(?:^|/)jax/(?:_src|experimental|interpreters)/"
    r"|(?:^|/)flax/(?:core|linen|nnx|training)/"
    r"|(?:^|/)(?:haiku|optax)/_src/"
    r"|(?:^|/)numpy/(?:_?core|lib|linalg)/"
    r"|(?:^|/)(?:jaxlib|torch_xla)/"
    r"|(?:^|/)hlo_tools/(?:aot/|testing\.py$)"
    r"|(?:^|/)absl/app\.py$"
    r"|^$"
    r"|^<(?!ipython-input|stdin>)",
    re.IGNORECASE,
)
"""Files that are nobody's own code: installed packages, Python itself, pseudo files such as
`<string>`, and the source trees of the frameworks, and of what compiles for us, where they are not
installed."""

_SECTION = re.compile(r"(FileNames|FunctionNames|FileLocations|StackFrames)\s*$")
_NUMBERED = re.compile(r"\s*(\d{1,9})\s+(.*)")
_FIELD = re.compile(r"(\w+)=(-?\d{1,9})\b")
_METADATA = re.compile(r'(\w+)=("(?:[^"\\]|\\.)*+"|[^\s,"{}]++)')

_PASSING = frozenset(
    {
        "bitcast", "copy", "copy-done", "copy-start", "get-tuple-element", "optimization-barrier",
        "tuple",
    }
)  # fmt: skip
"""Opcodes that only hand a value on."""

_CALLING = frozenset({"async-start", "call", "conditional", "while"})

_Next = Callable[[Instruction], Sequence[Instruction]]
_Tells = Callable[[Instruction], object]


def is_library_file(file: str) -> bool:
    """Whether a file is nobody's own code, as far as its path alone tells."""
    return bool(_LIBRARY.search(file.replace("\\", "/")))


class Provenance:
    """Where the instructions of one module come from.

    Columns are those of the dump plus one: XLA counts bytes of the line from 0.

    Args:
      module: whose instructions will be asked about.
      library_paths: glob patterns of further files that are not the user's own code.
      own_paths: glob patterns of files that are, whatever else matches.
    """

    def __init__(
        self,
        module: Module,
        *,
        library_paths: Sequence[str] = (),
        own_paths: Sequence[str] = (),
    ) -> None:
        self._module = module
        self._own = [re.compile(translate(glob)) for glob in own_paths]
        self._libraries = [re.compile(translate(glob)) for glob in library_paths]
        self._is_library: dict[str, bool] = {}
        self._stacks: dict[int, tuple[SourceLocation, ...]] = {}
        self._origins: dict[Instruction, Instruction | None] = {}

    def location(self, instruction: Instruction) -> SourceLocation | None:
        """The innermost frame of the user's own code, or `None` where nothing tells.

        Where all frames lie in libraries, the innermost of them. An instruction without a place
        of its own takes that of what it serves, marked as inferred: a fusion that of its root,
        others that of their users, then of their operands, then of what calls their computation.
        """
        return self._innermost(self.stack(instruction))

    def noted(self, instruction: Instruction) -> tuple[str | None, SourceLocation | None]:
        """The operation's name and place as the instruction's own metadata has them."""
        metadata = self._metadata(instruction)
        return metadata.get("op_name") or None, self._innermost(self._frames(metadata))

    def stack(self, instruction: Instruction) -> tuple[SourceLocation, ...]:
        """The frames behind an instruction, innermost first; each marked where it is inferred."""
        origin = self._origin(instruction)
        if origin is None:
            return ()
        frames = self._own_stack(origin)
        if origin is instruction:
            return frames
        return tuple(replace(frame, inferred=True) for frame in frames)

    def op_name(self, instruction: Instruction) -> str | None:
        """The name of the operation in the user's program, for example `jit(step)/dot_general`.

        For a parameter that is the argument's name. Without one of its own, an instruction takes
        that of the instruction whose place it takes, or of the nearest one that has a name.
        """
        name = self._own_name(instruction)
        if not name:
            origin = self._origin(instruction)
            name = self._own_name(origin) if origin is not None else None
        if not name:
            namesake = self._served(instruction, self._own_name)
            name = self._own_name(namesake) if namesake is not None else None
        return name

    def _innermost(self, frames: Sequence[SourceLocation]) -> SourceLocation | None:
        return next((f for f in frames if not self.is_library(f.file)), None) or (
            frames[0] if frames else None
        )

    def is_library(self, file: str) -> bool:
        """Whether a file, as the dump spells it, is not the user's own code."""
        known = self._is_library.get(file)
        if known is None:
            path = file.replace("\\", "/")
            known = not any(glob.match(path) for glob in self._own) and (
                is_library_file(file) or any(glob.match(path) for glob in self._libraries)
            )
            self._is_library[file] = known
        return known

    @cached_property
    def _tables(self) -> "_FrameTables":
        return _FrameTables(self._module.frame_tables)

    @cached_property
    def _has_places(self) -> bool:
        return bool(self._tables.frames) or "source_file=" in self._module.text

    def _metadata(self, instruction: Instruction) -> dict[str, str]:
        text = instruction.attribute("metadata")
        if not text:
            return {}
        return {key: parse_string(value) for key, value in _METADATA.findall(text)}

    def _own_name(self, instruction: Instruction) -> str | None:
        return self._metadata(instruction).get("op_name") or None

    def _own_stack(self, instruction: Instruction) -> tuple[SourceLocation, ...]:
        """The frames that the instruction's own metadata names."""
        return self._frames(self._metadata(instruction))

    def _frames(self, metadata: dict[str, str]) -> tuple[SourceLocation, ...]:
        frame = _number(metadata.get("stack_frame_id"))
        if frame:
            frames = self._stacks.get(frame)
            if frames is None:
                frames = self._stacks[frame] = tuple(self._tables.stack(frame))
            if frames:
                return frames
        file = metadata.get("source_file")
        if not file:
            return ()
        numbers = {key: _number(value) for key, value in metadata.items()}
        return (
            _place(
                file,
                line=numbers.get("source_line"),
                end_line=numbers.get("source_end_line"),
                column=numbers.get("source_column"),
                end_column=numbers.get("source_end_column"),
            ),
        )

    def _origin(self, instruction: Instruction) -> Instruction | None:
        """The instruction whose metadata tells the place: itself, or what it serves."""
        if instruction in self._origins:
            return self._origins[instruction]
        found: Instruction | None = None
        if self._has_places:
            told = bool(self._own_stack(instruction))
            found = instruction if told else self._served(instruction, self._own_stack)
        self._origins[instruction] = found
        return found

    def _served(self, instruction: Instruction, tells: _Tells) -> Instruction | None:
        """What an instruction is there for, as far as `tells` finds something in its metadata."""
        return (
            self._in_body(instruction, tells)
            or self._nearest(instruction, _users, tells)
            or self._nearest(instruction, _operands, tells)
            or self._around(instruction, tells)
        )

    def _in_body(self, instruction: Instruction, tells: _Tells) -> Instruction | None:
        """What the computation that an instruction runs is for: its root, or what feeds that."""
        if instruction.opcode not in _CALLING and instruction.opcode != "fusion":
            return None
        for body in instruction.called_computations:
            root = body.root
            if tells(root):
                return root
            found = self._nearest(root, _operands, tells)
            if found is not None:
                return found
        return None

    def _nearest(self, start: Instruction, following: _Next, tells: _Tells) -> Instruction | None:
        """The first instruction that tells, breadth first; through any that do not.

        What only hands values on is left behind before anything else is looked at.
        """
        seen = {start}
        queue = deque([start])
        while queue:
            for neighbour in following(queue.popleft()):
                if neighbour in seen:
                    continue
                seen.add(neighbour)
                if tells(neighbour):
                    return neighbour
                if len(seen) > MAX_SEARCHED:
                    return None
                if neighbour.opcode in _PASSING:
                    queue.appendleft(neighbour)
                    continue
                if neighbour.opcode == "fusion":
                    for body in neighbour.called_computations:
                        if tells(body.root):
                            return body.root
                queue.append(neighbour)
        return None

    def _around(self, instruction: Instruction, tells: _Tells) -> Instruction | None:
        """The telling instruction that calls, directly or not, the computation this is in."""
        computation = instruction.computation
        for _ in range(MAX_SEARCHED):
            caller = self._callers.get(computation) or self._fusions.get(computation)
            if caller is None or tells(caller):
                return caller
            computation = caller.computation
        return None

    @cached_property
    def _callers(self) -> dict[Computation, Instruction]:
        return self._calling(_CALLING)

    @cached_property
    def _fusions(self) -> dict[Computation, Instruction]:
        return self._calling(frozenset({"fusion"}))

    def _calling(self, opcodes: frozenset[str]) -> dict[Computation, Instruction]:
        """Who calls a computation: the first of the instructions of some opcodes that does."""
        callers: dict[Computation, Instruction] = {}
        for instruction in self._module.instructions():
            if instruction.opcode in opcodes:
                for computation in instruction.called_computations:
                    callers.setdefault(computation, instruction)
        return callers


def _users(instruction: Instruction) -> Sequence[Instruction]:
    return instruction.users


def _operands(instruction: Instruction) -> Sequence[Instruction]:
    """The operands, the largest first: that is where most of the work came from."""
    return sorted(instruction.operands, key=lambda operand: -operand.shape.logical_bytes)


class _FrameTables:
    """The four tables below the `HloModule` line; what refers to nothing is left out."""

    def __init__(self, text: str) -> None:
        self.files: dict[int, str] = {}
        self.functions: dict[int, str] = {}
        self.locations: dict[int, dict[str, int]] = {}
        self.frames: dict[int, dict[str, int]] = {}
        section = ""
        for line in text.split("\n"):
            if header := _SECTION.match(line):
                section = header[1]
            elif entry := _NUMBERED.match(line):
                self._read(section, int(entry[1]), entry[2])

    def _read(self, section: str, number: int, value: str) -> None:
        if section == "FileNames":
            self.files[number] = parse_string(value)
        elif section == "FunctionNames":
            self.functions[number] = parse_string(value)
        else:
            fields = {key: int(digits) for key, digits in _FIELD.findall(value)}
            table = self.locations if section == "FileLocations" else self.frames
            table[number] = fields

    def stack(self, frame: int) -> Iterator[SourceLocation]:
        """The frames from the innermost one outwards."""
        seen: set[int] = set()
        while frame in self.frames and frame not in seen and len(seen) < MAX_FRAMES:
            seen.add(frame)
            fields = self.frames[frame]
            location = self.locations.get(fields.get("file_location_id", 0), {})
            file = self.files.get(location.get("file_name_id", 0))
            if file:
                yield _place(
                    file,
                    line=location.get("line"),
                    end_line=location.get("end_line"),
                    column=location.get("column"),
                    end_column=location.get("end_column"),
                    function=self.functions.get(location.get("function_name_id", 0)),
                )
            # Printed plus one (`xla/hlo/ir/hlo_module.cc`), so that 1 is "no parent".
            frame = fields.get("parent_frame_id", 1) - 1


def _place(
    file: str,
    *,
    line: int | None,
    end_line: int | None,
    column: int | None,
    end_column: int | None,
    function: str | None = None,
) -> SourceLocation:
    """A place from the dump's numbers, where 0 stands for unknown but in a column."""
    # Frames without columns, such as those of old Python, have 0 for both.
    has_columns = bool(column or end_column)
    return SourceLocation(
        file=file,
        line=max(line or 0, 0),
        end_line=end_line or None,
        column=column + 1 if has_columns and column is not None and column >= 0 else None,
        end_column=end_column + 1 if has_columns and end_column else None,
        function=function or None,
    )


def _number(text: str | None) -> int | None:
    return int(text) if text and text.isascii() and text.isdigit() and len(text) < 10 else None

"""Hypothesis strategies that generate HLO: shapes, and whole modules as text.

Modules are valid: XLA's parser accepts them. They are scheduled, and hold fusions, reductions,
loops with a condition that can be read, collectives, tuples, tiled layouts, metadata and frame
tables.
"""

from dataclasses import dataclass, field

from hypothesis import strategies as st

from hlo_tools.hlo.shape import Layout, Shape, format_shape

FLOATS = ("f32", "bf16", "f16")
ELEMENT_TYPES = (*FLOATS, "pred", "s4", "s8", "u8", "s32", "u32", "s64", "f8e4m3fn", "c64")
_TILES = {
    "f32": ((8, 128),), "s32": ((8, 128),), "u32": ((8, 128),),
    "bf16": ((8, 128), (2, 1)), "f16": ((8, 128), (2, 1)),
    "s8": ((8, 128), (4, 1)), "u8": ((8, 128), (4, 1)), "pred": ((8, 128), (4, 1)),
}  # fmt: skip

names = st.from_regex(r"[a-z][a-z_]{0,6}([.\-][a-z0-9]{1,4}){0,2}", fullmatch=True)
op_names = st.text(
    st.characters(codec="ascii", min_codepoint=32, exclude_characters='"\\'), max_size=30
)


@st.composite
def layouts(draw: st.DrawFn, rank: int, element_type: str = "f32") -> Layout:
    """A layout of an array of that rank."""
    tiles = ()
    if element_type in _TILES and rank >= 2:
        tiles = draw(st.sampled_from([(), _TILES[element_type]]))
    elif rank == 1:
        tiles = draw(st.sampled_from([(), ((128,),)]))
    return Layout(
        minor_to_major=tuple(draw(st.permutations(range(rank)))),
        tiles=tiles,
        element_bits=4 if element_type == "s4" else 0,
        memory_space=draw(st.sampled_from([0, 0, 0, 1, 5])) if rank else 0,
    )


@st.composite
def array_shapes(draw: st.DrawFn, element_type: str | None = None, max_rank: int = 4) -> Shape:
    """An array with a layout."""
    kind = element_type or draw(st.sampled_from(ELEMENT_TYPES))
    dimensions = tuple(draw(st.lists(st.integers(1, 700), max_size=max_rank)))
    layout = draw(layouts(len(dimensions), kind)) if dimensions else None
    return Shape(element_type=kind, dimensions=dimensions, layout=layout)


def shapes() -> st.SearchStrategy[Shape]:
    """An array, or tuples of them, nested."""
    return st.recursive(
        array_shapes(),
        lambda inner: st.lists(inner, max_size=7).map(
            lambda members: Shape(element_type="tuple", elements=tuple(members))
        ),
        max_leaves=12,
    )


@dataclass
class _Computation:
    """A computation that is being written: its lines, and what may be an operand."""

    name: str
    lines: list[str] = field(default_factory=list)
    values: list[tuple[str, Shape]] = field(default_factory=list)
    parameters: list[tuple[str, Shape]] = field(default_factory=list)

    def add(self, name: str, shape: Shape, rest: str) -> str:
        self.lines.append(f"%{name} = {format_shape(shape)} {rest}")
        self.values.append((name, shape))
        return name

    def text(self, *, entry: bool = False) -> str:
        listed = ", ".join(f"{n}: {format_shape(s, with_layout=False)}" for n, s in self.parameters)
        result = format_shape(self.values[-1][1], with_layout=False)
        body = [f"  {line}" for line in self.lines[:-1]] + [f"  ROOT {self.lines[-1]}"]
        head = f"{'ENTRY ' if entry else ''}%{self.name} ({listed}) -> {result} {{"
        return "\n".join([head, *body, "}"])


class _Writer:
    """Draws the parts of a module; every name is used once."""

    def __init__(self, draw: st.DrawFn, frames: int) -> None:
        self.draw = draw
        self.frames = frames
        self.taken: set[str] = set()
        self.done: list[str] = []

    def name(self, stem: str = "") -> str:
        base = stem or self.draw(names)
        name = base
        while name in self.taken:
            name = f"{base}.{len(self.taken)}"
        self.taken.add(name)
        return name

    def metadata(self) -> str:
        if not self.draw(st.booleans()):
            return ""
        fields = [f'op_name="{self.draw(op_names)}"']
        if self.frames and self.draw(st.booleans()):
            fields.append(f"stack_frame_id={self.draw(st.integers(1, self.frames))}")
        return f", metadata={{{' '.join(fields)}}}"

    def parameter(self, computation: _Computation, shape: Shape) -> str:
        number = len(computation.parameters)
        name = self.name(f"param_{number}")
        computation.parameters.append((name, shape))
        return computation.add(name, shape, f"parameter({number}){self.metadata()}")

    def elementwise(self, computation: _Computation) -> None:
        """One more value, from one that is there."""
        operand, shape = self.draw(st.sampled_from(computation.values))
        if shape.is_tuple or shape.element_type not in FLOATS:
            return
        opcode = self.draw(st.sampled_from(("negate", "add", "multiply", "copy", "tanh", "sine")))
        other = f", %{operand}" if opcode in ("add", "multiply") else ""
        computation.add(self.name(opcode), shape, f"{opcode}(%{operand}{other}){self.metadata()}")

    def combiner(self, element_type: str) -> str:
        scalar = Shape(element_type=element_type)
        computation = _Computation(self.name("region"))
        left, right = (self.parameter(computation, scalar) for _ in range(2))
        computation.add(self.name("add"), scalar, f"add(%{left}, %{right})")
        self.done.append(computation.text())
        return computation.name

    def fusion(self, computation: _Computation) -> None:
        operand, shape = self.draw(st.sampled_from(computation.values))
        if shape.is_tuple or shape.element_type not in FLOATS:
            return
        inner = _Computation(self.name("fused_computation"))
        self.parameter(inner, shape)
        for _ in range(self.draw(st.integers(1, 4))):
            self.elementwise(inner)
        inner.add(self.name("negate"), shape, f"negate(%{inner.values[-1][0]})")
        self.done.append(inner.text())
        computation.add(
            self.name("fusion"),
            shape,
            f"fusion(%{operand}), kind=kLoop, calls=%{inner.name}{self.metadata()}",
        )

    def all_reduce(self, computation: _Computation) -> None:
        operand, shape = self.draw(st.sampled_from(computation.values))
        if shape.is_tuple or shape.element_type not in FLOATS:
            return
        groups = self.draw(st.sampled_from(["{{0,1},{2,3}}", "[2,2]<=[4]", "[2,2]<=[2,2]T(1,0)"]))
        channel = len(self.taken) + 1
        computation.add(
            self.name("all-reduce"),
            shape,
            f"all-reduce(%{operand}), channel_id={channel}, replica_groups={groups}, "
            f"use_global_device_ids=true, to_apply=%{self.combiner(shape.element_type)}"
            f"{self.metadata()}",
        )

    def loop(self, computation: _Computation) -> None:
        """`for i in range(n): x = f(x)`, as XLA writes it."""
        operand, shape = self.draw(st.sampled_from(computation.values))
        if shape.is_tuple or shape.element_type not in FLOATS:
            return
        index = Shape(element_type="s32")
        flag = Shape(element_type="pred")
        state = Shape(element_type="tuple", elements=(index, shape))

        condition = _Computation(self.name("condition"))
        carried = self.parameter(condition, state)
        i = condition.add(self.name("i"), index, f"get-tuple-element(%{carried}), index=0")
        trips = self.draw(st.integers(1, 1000))
        bound = condition.add(self.name("constant"), index, f"constant({trips})")
        condition.add(self.name("compare"), flag, f"compare(%{i}, %{bound}), direction=LT")
        self.done.append(condition.text())

        body = _Computation(self.name("body"))
        carried = self.parameter(body, state)
        i = body.add(self.name("i"), index, f"get-tuple-element(%{carried}), index=0")
        one = body.add(self.name("constant"), index, "constant(1)")
        i = body.add(self.name("add"), index, f"add(%{i}, %{one})")
        x = body.add(self.name("x"), shape, f"get-tuple-element(%{carried}), index=1")
        x = body.add(self.name("tanh"), shape, f"tanh(%{x}){self.metadata()}")
        body.add(self.name("tuple"), state, f"tuple(%{i}, %{x})")
        self.done.append(body.text())

        zero = computation.add(self.name("constant"), index, "constant(0)")
        start = computation.add(self.name("tuple"), state, f"tuple(%{zero}, %{operand})")
        result = computation.add(
            self.name("while"),
            state,
            f"while(%{start}), condition=%{condition.name}, body=%{body.name}{self.metadata()}",
        )
        computation.add(self.name("result"), shape, f"get-tuple-element(%{result}), index=1")


_TABLES = """FileNames
1 "/home/user/model.py"
2 "/usr/lib/python3/site-packages/jax/_src/api.py"

FunctionNames
1 "train_step"
2 "<lambda>"

FileLocations
1 {file_name_id=1 function_name_id=1 line=12 end_line=12 column=4 end_column=20}
2 {file_name_id=2 function_name_id=2 line=7 end_line=9 column=0 end_column=3}

StackFrames
1 {file_location_id=1 parent_frame_id=1}
2 {file_location_id=2 parent_frame_id=2}

"""


@st.composite
def module_texts(draw: st.DrawFn) -> str:
    """A whole module, as XLA prints it after scheduling."""
    has_tables = draw(st.booleans())
    writer = _Writer(draw, frames=2 if has_tables else 0)
    entry = _Computation(writer.name("main"))
    for _ in range(draw(st.integers(1, 3))):
        writer.parameter(entry, draw(array_shapes(draw(st.sampled_from(FLOATS)))))
    steps = (writer.elementwise, writer.fusion, writer.all_reduce, writer.loop)
    for step in draw(st.lists(st.sampled_from(steps), min_size=1, max_size=6)):
        step(entry)
    arrays = [(n, s) for n, s in entry.values if not s.is_tuple]
    chosen = draw(st.lists(st.sampled_from(arrays), min_size=1, max_size=8))
    entry.add(
        writer.name("tuple"),
        Shape(element_type="tuple", elements=tuple(shape for _, shape in chosen)),
        f"tuple({', '.join('%' + name for name, _ in chosen)})",
    )
    tables = f"\n{_TABLES}" if has_tables else "\n\n"
    header = f"HloModule {draw(names)}, is_scheduled=true, num_partitions=4\n{tables}"
    return header + "\n\n".join([*writer.done, entry.text(entry=True)]) + "\n"

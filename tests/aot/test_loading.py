"""How a function and its example arguments are found, and what is said where they are not."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hlo_tools.aot.loading import Call, load_call
from hlo_tools.aot.targets import parse_target
from hlo_tools.errors import InputError

DEVICES = ("device 0", "device 1")


@pytest.fixture
def load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Call]]:
    """Loads `step` of a file with some text, and forgets the file's module afterwards."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    known = set(sys.modules)

    def loaded(text: str, *, example: str | None = None, target: str = "program.py:step") -> Call:
        (tmp_path / "program.py").write_text(text)
        return load_call(parse_target(target, "--aot"), example, DEVICES)

    yield loaded
    for name in set(sys.modules) - known:
        del sys.modules[name]


STEP = "def step(*args, **kwargs):\n    return args\n\n"


def test_a_tuple_holds_the_arguments_by_position(load: Callable[..., Call]) -> None:
    call = load(STEP + "def hlo_lint_example():\n    return 1, 2\n")
    assert call.function(3) == (3,)
    assert (call.args, call.kwargs) == ((1, 2), {})


def test_a_dict_holds_the_arguments_by_name(load: Callable[..., Call]) -> None:
    call = load(STEP + "def hlo_lint_example():\n    return {'x': 1}\n")
    assert (call.args, call.kwargs) == ((), {"x": 1})


def test_a_partial_holds_the_function_too(load: Callable[..., Call]) -> None:
    """As it is needed where the function is made for the mesh."""
    call = load(
        STEP + "import functools\n\ndef hlo_lint_example(devices):\n"
        "    return functools.partial(max, devices, key=len)\n"
    )
    assert call.function is max
    assert (call.args, call.kwargs) == ((DEVICES,), {"key": len})


@pytest.mark.parametrize("parameters", ["devices", "devices, seed=0", "devices=None"])
def test_whoever_takes_an_argument_is_given_the_devices(
    parameters: str, load: Callable[..., Call]
) -> None:
    call = load(STEP + f"def hlo_lint_example({parameters}):\n    return devices,\n")
    assert call.args == (DEVICES,)


def test_another_function_may_be_named(load: Callable[..., Call], tmp_path: Path) -> None:
    """Beside the function, or in another file."""
    assert load(STEP + "def small():\n    return 1,\n", example="small").args == (1,)
    (tmp_path / "elsewhere.py").write_text("def large():\n    return 2,\n")
    assert load(STEP, example="elsewhere.py:large").args == (2,)


def test_files_beside_it_can_be_imported(load: Callable[..., Call], tmp_path: Path) -> None:
    (tmp_path / "beside_it.py").write_text("SIZE = 7\n")
    text = "from beside_it import SIZE\n" + STEP + "def hlo_lint_example():\n    return SIZE,\n"
    assert load(text).args == (7,)


def test_a_method_is_a_function(load: Callable[..., Call]) -> None:
    text = (
        "class Model:\n    def apply(self, x):\n        return x\n\nmodel = Model()\n\n"
        "def hlo_lint_example():\n    return 1,\n"
    )
    call = load(text, target="program.py:model.apply")
    assert call.function(5) == 5


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("def stepp():\n    pass\n", "program.py: unknown function `step`; did you mean `stepp`?"),
        (STEP, "write one that returns the example arguments of `step`"),
        ("step = 3\n", "`step` is no function but a `int`"),
        (STEP + "def hlo_lint_example():\n    return 3\n", "returns a `int`: it must return"),
        (
            STEP + "import collections\nState = collections.namedtuple('State', 'a b')\n"
            "def hlo_lint_example():\n    return State(1, 2)\n",
            "returns a `State`: it must return",
        ),
        (STEP + "def hlo_lint_example(a, b):\n    return a,\n", "takes 2 arguments"),
        (
            STEP + "def hlo_lint_example():\n    return [][0],\n",
            "program.py:5: `hlo_lint_example` fails: IndexError: list index out of range",
        ),
        ("import sys\nsys.exit(3)\n", "program.py: this cannot be imported: it exits"),
        ("x = 1\ny = x.z\n", "program.py:2: this cannot be imported: AttributeError"),
        ("x = (\n", "program.py:1: this cannot be imported: SyntaxError"),
        ("import no_such_module\n", "program.py:1: this cannot be imported: ModuleNotFoundError"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(
    text: str, said: str, load: Callable[..., Call]
) -> None:
    with pytest.raises(InputError) as caught:
        load(text)
    assert said in str(caught.value)


def test_a_module_that_is_not_there(load: Callable[..., Call]) -> None:
    with pytest.raises(InputError, match="`no_such_module` cannot be imported"):
        load("", target="no_such_module:step")

"""What the person names: functions, topologies, and the compiler's words about memory."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hlo_tools.analysis.memory_refusal import MemoryRefusal, memory_refusal
from hlo_tools.aot.targets import (
    Target,
    folder_name,
    parse_target,
    parse_topology,
)
from hlo_tools.errors import InputError
from hlo_tools.hardware import CHIPS

GIB = 1 << 30


@pytest.mark.parametrize(
    ("text", "source", "name"),
    [
        ("pkg.module:step", "pkg.module", "step"),
        ("module:Model.apply", "module", "Model.apply"),
    ],
)
def test_a_function_of_a_module(text: str, source: str, name: str) -> None:
    target = parse_target(text, "--aot")
    assert target == Target(source=source, name=name)
    assert not target.is_file
    assert str(target) == text


def test_a_function_of_a_file(tmp_path: Path) -> None:
    file = tmp_path / "train.py"
    file.write_text("")
    target = parse_target(f"{file}:step", "--aot")
    assert target.is_file
    assert target.name == "step"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("train.py", "write `train.py:FUNCTION`"),
        ("module", "write `pkg.module:FUNCTION`"),
        (":step", "does not name a function"),
        ("module:", "`` is not the name of a function"),
        ("module:two words", "`two words` is not the name"),
        ("a-b:step", "`a-b` is neither"),
        ("dir/module:step", "`dir/module` is neither"),
        ("absent.py:step", "absent.py: there is no such file"),
    ],
)
def test_what_is_no_function_is_said_to_be_none(text: str, said: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_target(text, "--aot")
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("text", "name", "chip"),
    [
        ("v5e:4x4", "v5e:4x4", "v5e"),
        ("v5litepod:2x2", "v5e:2x2", "v5e"),
        ("v5p:2x2x1", "v5p:2x2x1", "v5p"),
        ("trillium:2x4", "v6e:2x4", "v6e"),
        ("7x:2x2x1", "tpu7x:2x2x1", "7x"),
        ("v7x:2x2x1", "tpu7x:2x2x1", "7x"),
        ("tpu7x:2x2x1", "tpu7x:2x2x1", "7x"),
    ],
)
def test_a_generation_goes_by_any_of_its_names(text: str, name: str, chip: str) -> None:
    """And libtpu is given the one that it knows."""
    topology = parse_topology(text)
    assert (topology.name, topology.chip) == (name, chip)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("v5e", "for example `v5e:4x4`"),
        ("v5e:16", "for example `v5e:4x4`"),
        ("v5e:4x", "for example `v5e:4x4`"),
        ("v9:2x2", "unknown chip `v9`"),
        ("h100:2x2", "h100 is no TPU"),
    ],
)
def test_what_is_no_topology_is_said_to_be_none(text: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        parse_topology(text)


@given(st.sampled_from([c.name for c in CHIPS if c.platform == "tpu"]), st.integers(1, 64))
def test_the_folder_of_a_dump_has_a_name_that_every_file_system_takes(chip: str, n: int) -> None:
    target = Target(source="some/where/train.py", name="Model.apply")
    name = folder_name(target, parse_topology(f"{chip}:{n}x{n}"))
    assert name.startswith("train.Model.apply-")
    assert not set(name) & set('/\\:*?"<>| ')


@pytest.mark.parametrize(
    "message",
    [
        "RESOURCE_EXHAUSTED: E1000: CompileTimeHbmOom: Ran out of memory on HBM, the total memory "
        "required for HLO temporaries (82.16G) exceeds available HBM (15.75G). HLO module: jit_f.",
        "RESOURCE_EXHAUSTED: XLA:TPU compile permanent error. Ran out of memory in memory space "
        "hbm. Used 82.16G of 15.75G hbm. Exceeded hbm capacity by 66.41G.",
    ],
)
def test_the_sizes_are_read_off_the_compilers_message(message: str) -> None:
    """In the words of new and old compilers; sizes have binary prefixes."""
    assert memory_refusal(message) == MemoryRefusal(
        needed_bytes=round(82.16 * GIB), available_bytes=round(15.75 * GIB)
    )


def test_a_kernel_that_does_not_fit_into_vmem_is_no_such_refusal() -> None:
    message = "RESOURCE_EXHAUSTED: Ran out of memory in memory space vmem. Used 20M of 16M vmem."
    assert memory_refusal(message) is None

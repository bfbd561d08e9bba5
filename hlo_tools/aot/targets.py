"""What the person names: a function, and a TPU topology to compile it for."""

import re
from dataclasses import dataclass
from pathlib import Path

from hlo_tools.errors import InputError, SettingsError
from hlo_tools.hardware import chip

_TOPOLOGY = re.compile(r"([A-Za-z][\w ]*|7x):(\d+(?:x\d+){1,2})", re.ASCII)
_UNSAFE = re.compile(r"[^\w.-]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A function of a module or of a file.

    Attributes:
      source: the name of the module (`pkg.module`), or the path of the file (`train.py`).
      name: of the function in it; with dots for what is inside of a class or an instance.
    """

    source: str
    name: str

    @property
    def is_file(self) -> bool:
        """Whether `source` is the path of a file."""
        return self.source.endswith(".py")

    def __str__(self) -> str:
        return f"{self.source}:{self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Topology:
    """Some TPUs of one generation.

    Attributes:
      name: as libtpu calls them, `v5e:4x4`.
      chip: the generation, as `hlo_tools.hardware` calls it.
    """

    name: str
    chip: str


def parse_target(text: str, option: str) -> Target:
    """Reads `pkg.module:function` or `file.py:function`.

    Raises:
      InputError: it is neither, or there is no such file.
    """
    source, _, name = text.rpartition(":")
    if not source:
        example = f"{text}:FUNCTION" if text.endswith(".py") else "pkg.module:FUNCTION"
        raise InputError(f"`{option} {text}` does not name a function: write `{example}`")
    if not all(part.isidentifier() for part in name.split(".")):
        raise InputError(f"`{option} {text}`: `{name}` is not the name of a function")
    target = Target(source=source, name=name)
    if not target.is_file and not all(part.isidentifier() for part in source.split(".")):
        raise InputError(
            f"`{option} {text}`: `{source}` is neither the name of a module nor a `.py` file"
        )
    if target.is_file and not Path(source).is_file():
        raise InputError("there is no such file", path=source)
    return target


def parse_topology(text: str) -> Topology:
    """Reads `v5e:4x4`: a TPU generation by any of its names, and how many chips along each axis.

    Raises:
      SettingsError: it is not of that form, or no known TPU.
    """
    found = _TOPOLOGY.fullmatch(text)
    if found is None:
        raise SettingsError(
            f"topology `{text}` is not GENERATION:SHAPE, for example `v5e:4x4` or `v5p:2x2x1`"
        )
    generation = chip(found[1])
    if generation.platform != "tpu":
        raise SettingsError(f"topology `{text}`: {generation.name} is no TPU")
    # libtpu calls one generation otherwise than JAX and Cloud do.
    name = "tpu7x" if generation.name == "7x" else generation.name
    return Topology(name=f"{name}:{found[2]}", chip=generation.name)


def folder_name(target: Target, topology: Topology) -> str:
    """A name for what is compiled, as a folder may have it: `train.step-v5e_4x4`."""
    stem = Path(target.source).stem if target.is_file else target.source
    return f"{stem}.{target.name}-{_UNSAFE.sub('_', topology.name)}"

"""Compiles programs ahead of time for chips that are not there."""

import functools
import re

import jax
from jax.experimental import topologies

from .survey import Verdict

TOPOLOGIES = {
    "v4": "v4:2x2x1",
    "v5e": "v5e:2x2",
    "v5p": "v5p:2x2x1",
    "v6e": "v6e:2x2",
    "7x": "tpu7x:2x2x1",
}
"""The names that libtpu has for the smallest machines of each generation."""

LONGEST = 240
"""Characters of a reason that are kept."""

# What stands before the reason in messages of Mosaic, of Pallas and of libtpu.
_BEFORE = re.compile(
    "|".join(
        (
            r"^[A-Z]+(_[A-Z]+)*: (?=Mosaic|LLO_CHECK|E\d|XLA|Allocation)",
            r"^Mosaic failed to compile TPU kernel with MLIR module name `.*?` HLO name `.*?`: ",
            r"^Pallas encountered an internal verification error\. Please file a bug at \S+ ",
            r"^Error details: ",
            r"^XLA:TPU compile permanent error\. ",
            r'^Invalid type: error: ".*\)+: ',
        )
    )
)
# What stands after it: operations in full, advice, and places in files.
_AFTER = re.compile(
    r"\. Please file an issue at \S+$"
    r"|\. Block spec for .*$"
    r"|: (?:%[\w:]+ = )?\"[\w.]+\"\(.*$"
    r"|(?<=in memory space vmem) while allocating .*$"
    r"| :: #allocation.*$"
    r"|\.?\d+, \d+\)\.$"
)
_PLACE = re.compile(r" (?:<lambda> )?at /\S+:\d+")


@functools.cache
def _target(chip):
    device = topologies.get_topology_desc(platform="tpu", topology_name=TOPOLOGIES[chip]).devices[0]
    mesh = jax.sharding.AbstractMesh(
        (1,),
        ("chip",),
        abstract_device=jax.sharding.AbstractDevice(
            device.device_kind, device.num_cores, platform="tpu"
        ),
    )
    return jax.sharding.SingleDeviceSharding(device), mesh


def attempt(build, chip):
    """Compiles the program that `build` makes; gives a `Verdict`, whatever is raised.

    Some of Pallas' lowering asks the current mesh what it lowers for, or else the machine, which is
    none: hence a mesh of an abstract device of the chip's kind.
    """
    sharding, mesh = _target(chip)
    stage = "jax"
    with jax.sharding.use_abstract_mesh(mesh):
        try:
            program = build()
            arguments = [
                jax.ShapeDtypeStruct(each.shape, each.dtype, sharding=sharding)
                for each in program.arguments
            ]
            lowered = jax.jit(program.function).lower(*arguments)
            stage = "libtpu"
            lowered.compile()
        except Exception as error:
            return Verdict(False, stage, reason(error))
    return Verdict(True)


def reason(error):
    """The first line of an exception's message that says why, without what all of them say."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    if not lines:
        return f"{type(error).__name__} without a message"
    text = " ".join(lines[:2]) if lines[0].endswith(":") else lines[0]
    shorter = _BEFORE.sub("", text, count=1)
    while shorter != text:
        text, shorter = shorter, _BEFORE.sub("", shorter, count=1)
    text = _PLACE.sub("", _AFTER.sub("", text)).rstrip(".")
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."

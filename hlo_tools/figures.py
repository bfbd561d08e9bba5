"""What a whole module costs, in numbers that can be compared and limited."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """The modelled figures of one step (one execution of the entry computation) on one device.

    Attributes:
      step_seconds: seconds of the step; `None` without a chip.
      exposed_collective_seconds: those in which the device only waits for collectives; `None`
        without a chip.
      hbm_bytes: bytes through device memory.
      wire_bytes: bytes that the device sends in collectives, as far as group sizes are known.
      dot_flops: operations of dots and convolutions, opaque calls left out.
      f32_dot_flops: those of `dot_flops` that have an operand of f32 or wider.
      peak_hbm_bytes: device memory at the fullest moment, arguments and outputs included.
      argument_bytes: the part of it that arguments take.
      output_bytes: the part of it that outputs take, apart from those that lie in arguments.
      buffer_bytes: bytes of all buffers in device memory, whenever they live.
      padding_bytes: the part of `buffer_bytes` that is tile padding.
      collectives: collectives in the program text by kind, each counted once, sorted by kind.
    """

    step_seconds: float | None
    exposed_collective_seconds: float | None
    hbm_bytes: int
    wire_bytes: int
    dot_flops: int
    f32_dot_flops: int
    peak_hbm_bytes: int
    argument_bytes: int
    output_bytes: int
    buffer_bytes: int
    padding_bytes: int
    collectives: tuple[tuple[str, int], ...]

    @property
    def temporary_bytes(self) -> int:
        """Device memory at the fullest moment that neither arguments nor outputs take."""
        return self.peak_hbm_bytes - self.argument_bytes - self.output_bytes

    @property
    def exposed_collective_share(self) -> float | None:
        """The share of the step in which the device only waits for collectives."""
        if self.exposed_collective_seconds is None or not self.step_seconds:
            return None
        return self.exposed_collective_seconds / self.step_seconds

    @property
    def padded_share(self) -> float:
        """The share of the bytes of all buffers in device memory that is tile padding."""
        return self.padding_bytes / self.buffer_bytes if self.buffer_bytes else 0.0

    @property
    def f32_dot_share(self) -> float:
        """The share of the operations of dots that have an operand of f32 or wider."""
        return self.f32_dot_flops / self.dot_flops if self.dot_flops else 0.0

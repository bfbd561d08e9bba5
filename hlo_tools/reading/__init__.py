"""From bytes on disk to the texts of HLO modules: what `hlo_tools.io` is made of."""

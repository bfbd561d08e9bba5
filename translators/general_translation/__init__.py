"""Translations that hold for all sizes of a launch.

A kernel is translated for several launches that differ in sizes. Where the texts differ in
numbers alone, and each number follows a formula over dimensions of the arguments, one function
takes the place of all of them: it reads the sizes off its arguments.

What that rests on:

- For the launches that formulas are fitted to, and for one launch with each size as large as can
  be analysed, the function's text with the formulas evaluated is exactly the translation of that
  launch. So it is as right as that translation. These sizes have no common divisors and are
  larger than blocks, so that no number has its value by chance.
- For sizes below a block, of 1, and of whole blocks, and for the launch itself, translations may
  have other texts. There the function is run, and compared with the evaluator on random inputs:
  confirmed, not proved. A launch that is too large to be run so is left to whoever verifies it.
- For all other sizes it is inferred from these: not proved. A text whose form depends on a
  threshold that no launch tried reaches would not be noticed.
- That a launch of other sizes has the grid, the strides and the integers that the formulas give
  is a guess from the launches that are known (see `resize.reading`). The docstring of the function
  says what it takes them to be.

What does not fit stays as in the launch, and a check in the function refuses anything else.
"""

from translators.general_translation.search import generalized, translate_general

__all__ = ["generalized", "translate_general"]

"""Programs run one after another where that is known to matter, and together where data decide."""

import numpy as np
from emitted import agrees
from kernel_builder import F32_POINTER, I32_POINTER, Kernel

ROWS, COLUMNS = 5, 8


def changed_at_label(neighbour):
    """Rows in place, one column of them by a label that is loaded; or the next row's."""
    k = Kernel(x=F32_POINTER, label=I32_POINTER)
    row = k.pid(0)
    label = k.load(k.point(k["label"], row))
    start = k.mul(row, COLUMNS)
    picked = k.load(k.point(k["x"], k.add(start, label)))
    columns = k.arange(COLUMNS)
    place = k.point(k["x"], k.add(start, columns))
    value = k.load(place)
    total = k.builder.value("arith.addf", value, k.to(picked, (COLUMNS,)))
    k.store(place, total)
    if neighbour:
        k.store(k.point(k["x"], k.add(start, COLUMNS)), picked)
    return k.done()


def arrays(rows=ROWS):
    rng = np.random.default_rng(3)
    return {
        "x": rng.standard_normal((rows, COLUMNS)).astype(np.float32),
        "label": rng.integers(0, COLUMNS, rows).astype(np.int32),
    }


def test_programs_take_each_op_together_where_only_data_could_make_them_meet():
    _, function = agrees(changed_at_label(neighbour=False), arrays(), (ROWS,))
    assert "fori_loop" not in function.source
    (note,) = (each for each in function.notes if "together" in each.text)
    assert "should data make `tt.load`" in note.text


def test_programs_that_are_known_to_meet_run_one_after_another():
    _, function = agrees(changed_at_label(neighbour=True), arrays(ROWS + 1), (ROWS,))
    assert "fori_loop" in function.source
    assert any("programs run one after another" in each.text for each in function.notes)

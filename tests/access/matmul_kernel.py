"""The matrix multiplication of Triton's tutorial, with its grouped order of tiles."""

from kernel_builder import F32_POINTER, Kernel, array, launch

from translators.access.launch import Specialization
from translators.graph.graph import Module
from translators.graph.types import I32


def matmul(m: int, n: int, k_size: int, wrap: bool) -> Module:
    """The tutorial's kernel: grouped program ids, carried pointers, 8 x 8 x 8 tiles."""
    tile, group = 8, 2
    k = Kernel(
        a=F32_POINTER,
        b=F32_POINTER,
        c=F32_POINTER,
        sam=I32,
        sak=I32,
        sbk=I32,
        sbn=I32,
        scm=I32,
        scn=I32,
        k=I32,
    )
    blocks_m, blocks_n = -(-m // tile), -(-n // tile)
    pid = k.pid()
    width = group * blocks_n
    first = k.mul(k.div(pid, width), group)
    k.at("group_size_m = min(num_pid_m - first_pid_m, GROUP_SIZE_M)")
    size = k.minimum(k.sub(blocks_m, first), group)
    pid_m = k.add(first, k.rem(k.rem(pid, width), size))
    pid_n = k.div(k.rem(pid, width), size)
    rows = k.add(k.mul(pid_m, tile), k.arange(tile))
    columns = k.add(k.mul(pid_n, tile), k.arange(tile))
    k.at("offs_am = (pid_m * BLOCK_M + tl.arange(0, BLOCK_M)) % M")
    rows_a = k.rem(rows, m) if wrap else rows
    columns_b = k.rem(columns, n) if wrap else columns
    depth = k.arange(tile)
    a = k.point(
        k["a"], k.add(k.mul(k.expand(rows_a, 1), k["sam"]), k.mul(k.expand(depth, 0), k["sak"]))
    )
    b = k.point(
        k["b"], k.add(k.mul(k.expand(depth, 1), k["sbk"]), k.mul(k.expand(columns_b, 0), k["sbn"]))
    )

    def body(counter, carried):
        left = k.sub(k["k"], k.mul(counter, tile))
        k.at("a = tl.load(a_ptrs, mask=offs_k[None, :] < K - k * BLOCK_K)")
        k.load(carried[0], k.less(k.expand(depth, 0), left))
        k.at("b = tl.load(b_ptrs, mask=offs_k[:, None] < K - k * BLOCK_K)")
        k.load(carried[1], k.less(k.expand(depth, 1), left))
        return (
            k.point(carried[0], k.mul(k["sak"], tile)),
            k.point(carried[1], k.mul(k["sbk"], tile)),
        )

    k.loop(0, k.div(k.add(k["k"], tile - 1), tile), 1, (a, b), body)
    inside = k.both(
        k.to(k.less(k.expand(rows, 1), m), (tile, tile)),
        k.to(k.less(k.expand(columns, 0), n), (tile, tile)),
    )
    c = k.point(
        k["c"], k.add(k.mul(k.expand(rows, 1), k["scm"]), k.mul(k.expand(columns, 0), k["scn"]))
    )
    k.at("tl.store(c_ptrs, c, mask=c_mask)")
    k.store(c, mask=inside)
    return k.done()


def matmul_launch(module: Module, m: int, n: int, k: int, transposed: bool) -> Specialization:
    b_strides = (1, k) if transposed else (n, 1)
    return launch(
        module,
        -(-m // 8) * -(-n // 8),
        scalars={
            "sam": k,
            "sak": 1,
            "sbk": b_strides[0],
            "sbn": b_strides[1],
            "scm": n,
            "scn": 1,
            "k": k,
        },
        a=array("a", m, k),
        b=array("b", k, n, strides=b_strides),
        c=array("c", m, n),
    )

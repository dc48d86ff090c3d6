# SPDX-License-Identifier: MIT OR Apache-2.0
"""The wait was longer than the whole of dracut's, or it would prove nothing."""

DRACUT_GIVES_UP = 10.0


def verify(boot):
    start, verified = boot.first(r"boot-test: initramfs"), boot.first(r"ibboot: rxe0/1: verified")
    if start is None or verified is None:
        yield "kmsg: no line of the start or of the verified link"
    elif verified[0] - start[0] < 2 * DRACUT_GIVES_UP:
        yield f"verified after {verified[0] - start[0]:.0f} s: too soon to say anything about dracut's limit"

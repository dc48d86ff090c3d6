# SPDX-License-Identifier: MIT OR Apache-2.0
"""No link is verified before the subnet manager runs, and the wait for the subnet manager is logged."""

WAITED_AT_LEAST = 14.0
WAITING = (
    "ibboot: waiting: ib0 (softib0/1): port is not ACTIVE: INIT, no subnet manager has configured this port, "
    "expected ACTIVE [port.state]"
)


def verify(boot):
    waiting = next((when for when, text in boot.kmsg if text == WAITING), None)
    start = boot.first("boot-test: the subnet manager starts")
    verified = boot.first(r"ibboot: ib0 \(softib0/1\): verified: ")
    if None in (waiting, start, verified):
        yield f"kmsg: a line is missing: waiting {waiting}, the subnet manager {start}, verified {verified}"
        return
    if start[0] - waiting < WAITED_AT_LEAST:
        yield f"the subnet manager began {start[0] - waiting:.1f} s after the wait began: too early to show anything"
    if verified[0] < start[0]:
        yield "verified before the subnet manager began"

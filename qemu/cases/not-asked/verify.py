# SPDX-License-Identifier: MIT OR Apache-2.0
"""Nothing of ibboot in the journal, the kernel's log or the process list, and none of its modules loaded."""

import re

# systemd's own line about a unit whose condition does not hold, and the harness's own names.
NOT_OURS = re.compile(r"ibboot-check\.service.*skipped|Condition check resulted in InfiniBand/RoCE link check|ibboot-test")


def verify(boot):
    journal = (boot.text("out/journal.txt") or "").splitlines()
    if not journal:
        yield "no journal was carried out"
    for line in journal:
        if "ibboot" in line and not NOT_OURS.search(line):
            yield f"journal: {line}"
    for when, text in boot.kmsg:
        if "ibboot: " in text or re.search(r"rdma_rxe|ib_core|infiniband", text):
            yield f"kmsg: {text}"
    if "(ibboot)" in (boot.text("out/processes.txt") or ""):
        yield "a process of ibboot runs"
    started = "".join(line for line in journal if "Starting" in line)
    for stage in ("cmdline", "initqueue"):
        if f"dracut-{stage}.service" in started:
            yield f"dracut-{stage}.service ran, expected: skipped"

# SPDX-License-Identifier: MIT OR Apache-2.0
"""Nothing of ibboot in the kernel's log, and none of its modules loaded."""

import re


def verify(boot):
    for when, text in boot.kmsg:
        if "ibboot: " in text or re.search(r"rdma_rxe|ib_core|infiniband", text):
            yield f"kmsg at {when}: {text}"

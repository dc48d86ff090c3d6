# SPDX-License-Identifier: MIT OR Apache-2.0
"""ibboot sets the mode once."""


def verify(boot):
    lines = [text for _, text in boot.kmsg if text.endswith(": network namespace mode exclusive")]
    if len(lines) != 1:
        yield f"kmsg: {len(lines)} lines about the mode of network namespaces, expected 1: {lines}"

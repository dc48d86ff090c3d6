# SPDX-License-Identifier: MIT OR Apache-2.0
"""By the kernel's log: the eight probes take eight times as long as one."""

PROBE = 2.0
HCAS = 8


def verify(boot):
    began = boot.first(r"softib softib\.\d: initialising, ")
    ended = [when for when, text in boot.kmsg if text in [f"softib softib.{n}: softib{n}" for n in range(HCAS)]]
    if began is None or len(ended) != HCAS:
        yield f"kmsg: the first probe {began}, {len(ended)} probes done, expected {HCAS}"
    elif max(ended) - began[0] < HCAS * PROBE:
        yield f"all HCAs after {max(ended) - began[0]:.1f} s, and one takes {PROBE} s: this shows nothing"

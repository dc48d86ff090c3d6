# SPDX-License-Identifier: MIT OR Apache-2.0
"""The two tries took what they may take, and no longer."""


def verify(boot):
    begins = boot.first(r"ibboot: ib0: DHCP: begins")
    over = boot.first(r"ibboot: 0 of 1 required links verified ")
    if not begins or not over:
        yield f"kmsg: begins {begins}, over {over}"
    elif not 10.0 <= over[0] - begins[0] < 40.0:
        yield f"given up after {over[0] - begins[0]:.1f} s, expected 10"

# SPDX-License-Identifier: MIT OR Apache-2.0
"""The image has nothing by which udev could rename ib0, and ibboot finds that out with what its unit lets it read."""


def verify(boot):
    waited = boot.first(r"ibboot: udev may rename an interface")
    if waited is not None:
        yield f"ibboot waited for udev: {waited[1]!r}"

# SPDX-License-Identifier: MIT OR Apache-2.0
"""`ibboot check` in the real root asks the subnet administrator again and comes to the same diagnosis."""


def verify(boot):
    reason = (boot.text("run/result") or "").partition("\n")[2].strip()
    found = reason.partition("no carrier: ")[2].partition(", expected")[0]
    if not found or found not in (boot.text("out/check.txt") or ""):
        yield f"ibboot check: no line has {found!r}"

# SPDX-License-Identifier: MIT OR Apache-2.0
"""`ibboot check` in the real root asks the subnet administrator again and comes to the same diagnosis."""


def verify(boot):
    reason = (boot.text("run/result") or "").partition("\n")[2].strip()
    seen = reason.partition("no carrier: ")[2].partition(", expected")[0]
    if not seen or seen not in (boot.text("out/check.txt") or ""):
        yield f"ibboot check: {seen!r} is not in it"

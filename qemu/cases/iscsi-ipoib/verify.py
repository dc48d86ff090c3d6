# SPDX-License-Identifier: MIT OR Apache-2.0
"""No line of ibboot's in the kernel log has the password; the kernel's own command line has."""


def verify(boot):
    lines = [text for _, text in boot.kmsg if "S3CR3T" in text]
    if not any("ommand line:" in text for text in lines):
        yield "kmsg: no command line with the password: this case shows nothing"
    for text in lines:
        if "ibboot: " in text:
            yield f"kmsg: {text}"

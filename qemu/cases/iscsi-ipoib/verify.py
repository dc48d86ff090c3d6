# SPDX-License-Identifier: MIT OR Apache-2.0
"""No line of ibboot's in the kernel log has the password; the kernel's own command line has."""


def verify(boot):
    said = [text for _, text in boot.kmsg if "S3CR3T" in text]
    if not any("ommand line:" in text for text in said):
        yield "kmsg: no command line with the password in it: this case shows nothing"
    for text in said:
        if "ibboot: " in text:
            yield f"kmsg: {text}"

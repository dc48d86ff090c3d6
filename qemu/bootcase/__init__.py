# SPDX-License-Identifier: MIT OR Apache-2.0
"""Boot ibboot in QEMU with a real kernel, a real dracut image and a real root, and judge the
result."""

# SPDX-License-Identifier: MIT OR Apache-2.0
"""What a build costs, against what it may cost."""

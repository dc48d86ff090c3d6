# SPDX-License-Identifier: MIT OR Apache-2.0
"""The costs of a build, compared with their budgets."""

#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# A piece of work for one processor, always the same: what it takes says how long a test has to wait here and now.

turns=0
while [ "$turns" -lt 200000 ]; do
    turns=$((turns + 1))
done

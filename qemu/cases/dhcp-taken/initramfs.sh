#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# The disk is there at once: this boot waits for the second address, as with a root file system that is mounted over it.

# shellcheck disable=SC2154 # dracut exports hookdir
cat > "$hookdir/initqueue/finished/90-test.sh" << 'END'
ip -o addr show dev ib0 2> /dev/null | grep -q 'inet 10\.0\.0\.11/'
END

# SPDX-License-Identifier: MIT OR Apache-2.0
#
# The far end where a case has no far.sh of its own: a subnet manager on time, and an address to talk to.

. /run/ibboot-fabric/lib.sh
fabric sm start
fabric address 10.0.0.2/24

# The far end has the address that the near end wants, and is in the broadcast group before it. Nobody manages the
# second port: the verdict waits for it.
. /run/ibboot-fabric/lib.sh
fabric knob softib0/1 fail_joins 2
fabric address 10.0.0.1/24
fabric sm start

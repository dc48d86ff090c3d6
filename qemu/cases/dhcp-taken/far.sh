# The server does not ask before it offers; another host has the first address of its range, who is in the broadcast group
# before the near end.
. /run/ibboot-fabric/lib.sh
fabric knob softib0/1 fail_joins 2
fabric address 10.0.0.2/24
fabric address 10.0.0.10/24
fabric sm start
dhcp_server --dhcp-sequential-ip --dhcp-range=10.0.0.10,10.0.0.11,255.255.255.0,1h

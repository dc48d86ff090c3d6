. /run/ibboot-fabric/lib.sh
iscsi_target
dhcp_server --dhcp-range=10.0.0.55,10.0.0.55,255.255.255.0,1h --dhcp-option=option:root-path,iscsi:10.0.0.2::::iqn.2026-01.test:disk

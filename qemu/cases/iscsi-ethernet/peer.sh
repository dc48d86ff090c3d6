. /run/ibboot-fabric/lib.sh
iscsi_target chap node S3CR3T-of-CHAP
dhcp_server --dhcp-range=10.0.0.55,10.0.0.55,255.255.255.0,1h

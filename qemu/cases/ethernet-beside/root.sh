grep -q ACTIVE /sys/class/infiniband/softib2/ports/1/state && grep -q INIT /sys/class/infiniband/softib0/ports/1/state

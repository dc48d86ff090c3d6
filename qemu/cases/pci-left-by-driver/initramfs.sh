# As after a probe that failed: the function is on the bus and has no driver.
echo 0000:01:00.0 > /sys/bus/pci/drivers/softib/unbind

# The second rule is the reason to wait for udev at all: as far as ibboot knows, udev may rename any interface.
# Much longer than ibboot leaves an interface to udev; dracut and udevd themselves wait for the end of it.
mkdir -p /run/udev/rules.d
cat > /run/udev/rules.d/78-stuck.rules <<'END'
SUBSYSTEM=="net", ACTION=="add", KERNEL=="ib0|ib1|eth0", PROGRAM="/bin/sleep 30"
SUBSYSTEM=="net", KERNEL=="usb0", NAME="management"
END

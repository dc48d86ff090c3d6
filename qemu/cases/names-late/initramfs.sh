# Before the rule that has the name.
mkdir -p /run/udev/rules.d
cat > /run/udev/rules.d/78-slow.rules <<'END'
SUBSYSTEM=="net", ACTION=="add", KERNEL=="ib0", PROGRAM="/bin/sleep 1"
END

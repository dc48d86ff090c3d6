ip -4 addr show dev eth0
ls -la /run/ibboot && exit 1
ip -4 addr show dev eth0 | grep -q 'inet 10.0.2.15/24 .* eth0'

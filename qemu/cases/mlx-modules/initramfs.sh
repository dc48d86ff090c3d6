# The site's file is in the image because it speaks of RDMA modules; one that does not is not.
[ -e /etc/modprobe.d/site-rdma.conf ] || echo '<3>boot-test: site-rdma.conf is missing' > /dev/kmsg
[ ! -e /etc/modprobe.d/unrelated.conf ] || echo '<3>boot-test: unrelated.conf is there' > /dev/kmsg

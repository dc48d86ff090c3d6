# The real root has no modules.
modprobe nfsv4

(umask 077 && printf ibboot > /etc/disk.key)

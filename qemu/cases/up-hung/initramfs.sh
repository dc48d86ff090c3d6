# As a firmware that does not answer would.
sh /usr/lib/ibboot-test/when-up-runs.sh STOP < /dev/null > /dev/null 2>&1 &

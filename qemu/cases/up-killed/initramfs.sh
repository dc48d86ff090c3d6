sh /usr/lib/ibboot-test/when-up-runs.sh KILL < /dev/null > /dev/null 2>&1 &

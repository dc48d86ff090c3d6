# The fabric lives until the crash.
ibboot check --all && exec sh /run/ibboot-test/crash/crash.sh

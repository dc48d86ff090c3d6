. /run/ibboot-fabric/lib.sh
set -e
ip -d addr
[ "$(ip -o link | grep -c 'ib0.8001@ib0')" = 1 ]
talk 10.0.1.1 10.0.1.2

# What suggest writes describes this machine, whose root has none of the modules.
mount -t tmpfs none /lib/modules
ibboot suggest | tee suggest.txt
ibboot plan --cmdline "$(ibboot suggest --format line)"
ibboot check --all --cmdline "$(ibboot suggest --format line)" > suggested.txt

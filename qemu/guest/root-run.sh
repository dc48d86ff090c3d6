#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# The last step of a boot, in the real root: run the case's script, collect, carry out, power off.

out=/run/ibboot-test/out
mkdir -p "$out"
cd "$out" || exit 1
if [ -e /run/ibboot-test/root.sh ]; then
    sh /run/ibboot-test/root.sh > root.txt 2>&1
    echo "$?" > root.exit
fi
systemctl show ibboot-check.service -p Result,ExecMainStatus,ConditionResult,ActiveEnterTimestampMonotonic > check.unit
systemctl is-system-running > system.state
for process in /proc/[0-9]*; do
    [ ! -r "$process/stat" ] || cat "$process/stat"
done > processes.txt 2> /dev/null
cat /proc/interrupts > interrupts.txt
# For a comparison with another boot.
sort /proc/mounts > mounts.txt
cut -d ' ' -f 1 /proc/modules | sort > modules.txt
ip -o addr > addresses.txt
systemctl list-units --failed --plain --no-legend > failed.txt
find /run -path /run/ibboot-test -prune -o -path /run/ibboot-fabric -prune -o -print | sort > run.txt
if [ -e /run/ibboot/result ]; then
    ibboot check --all > check.txt 2>&1
    echo "$?" > check.exit
fi
if [ -e /run/ibboot/state.json ]; then
    ibboot facts > facts.json 2> facts.err
    ibboot check --format json > check.json 2> check.err
    ibboot timeline > timeline.txt 2>&1
    ibboot timeline --format json > timeline.json 2> timeline.err
    show="sh /usr/lib/ibboot-test/show.sh"
    $show "In the real root: ibboot check" cat check.txt
    $show "Where the time went: ibboot timeline" cat timeline.txt
fi
journalctl -b -o short-monotonic --no-pager > journal.txt
sh /usr/lib/ibboot-test/export.sh root
# A case may end as an administrator ends a machine: systemd stops its units first.
if [ -e /run/ibboot-test/orderly ]; then
    systemctl poweroff --no-block
else
    systemctl poweroff --force --force
fi

# Stop `ibboot up` once it has run for two looks, as a firmware that does not answer would.
(
    tries=1200 before=''
    while [ "$tries" -gt 0 ]; do
        tries=$((tries - 1))
        sleep 0.5
        now=''
        for process in /proc/[0-9]*; do
            comm=''
            { read -r comm < "$process/comm"; } 2> /dev/null
            [ "$comm" != ibboot ] || now=${process#/proc/}
        done
        if [ -n "$now" ] && [ "$now" = "$before" ]; then
            kill -STOP "$now"
            exit
        fi
        before=$now
    done
) < /dev/null > /dev/null 2>&1 &

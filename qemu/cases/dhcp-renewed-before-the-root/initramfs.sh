# A hook that waits, as the download of an image does.
cat > "$hookdir/pre-mount/50-long-way.sh" <<'EOF'
(
    . /run/ibboot-fabric/lib.sh
    has_renewed() { [ "$(grep -c DHCPACK /run/ibboot-test/out/far.txt)" -gt "$1" ]; }
    wait_for 240 'has_renewed 1'
    fabric cable out
    wait_for 60 'is_state softib0 1 DOWN'
    fabric cable in
    wait_for 240 'has_renewed 2' && say "the lease is renewed twice"
)
EOF

# A hook that waits, as the download of an image does.
cat > "$hookdir/pre-mount/50-long-way.sh" <<'EOF'
(
    . /run/ibboot-fabric/lib.sh
    wait_for 240 '[ "$(grep -c DHCPACK /run/ibboot-test/out/far.txt)" -ge 2 ]' && say "the lease is renewed"
)
EOF

set -e
[ -e left.txt ]
[ ! -s left.txt ]
[ ! -e /run/ibboot ]

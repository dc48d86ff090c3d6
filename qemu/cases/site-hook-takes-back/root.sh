set -e
[ ! -s left.txt ]
[ ! -e /run/ibboot ]

set -e
rdma dev set rxe0 name storage0
rdma link
ibboot check --format json > renamed.json
grep -q '"name": "storage0/1"' renamed.json
grep -q '"target": "rxe0:1"' renamed.json

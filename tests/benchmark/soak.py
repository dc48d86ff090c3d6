# SPDX-License-Identifier: MIT OR Apache-2.0
"""A long run of `ibboot lease` in a short time: 10,000 other interfaces come and go while the program
renews its leases 10,000 times, and its resident memory (VmRSS of proc_pid_status(5)) must not grow.

The leases belong to veth pairs on one bridge, in namespaces that end with the process that created
them. dnsmasq makes the program renew each lease after five seconds, the program's minimum.

`PYTHONPATH=tests python3 -m benchmark.soak PROGRAM PAIRS RENEWALS` runs inside and prints JSON.
"""

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

from .storm import TESTS, inside, ip, until
from .table import MEBIBYTES, TIMES, Unmeasured, say

PAIRS = 10_000
RENEWALS = 10_000
NODES = 200
# Variation of the allocator's caches is allowed; memory kept for each event or renewal would be a
# multiple.
GROWTH_BUDGET = 1.10
DEADLINE_SECONDS = 1800
# Memory is measured from here on: each lease has been renewed, and the first interfaces have come
# and gone.
WARM_RENEWALS = 2 * NODES
WARM_PAIRS = 200
PAIRS_AT_ONCE = 20
LEASE = 3600
SERVER = [
    *("dnsmasq", "--keep-in-foreground", "--conf-file=/dev/null", "--port=0", "--no-ping", "--user=root", "--pid-file"),
    *("--log-facility=-", "--quiet-dhcp", f"--dhcp-lease-max={2 * NODES}", "--dhcp-leasefile=/run/dnsmasq.leases"),
    # The server grants leases that it does not know, as after a restart.
    *("--dhcp-authoritative", "--dhcp-option=option:T1,5", "--dhcp-option=option:router"),
    "--dhcp-range=10.9.1.0,10.9.8.255,255.255.0.0,1h",
]
COUNTS = "sent offers acks naks unanswered_requests foreign unsolicited unusable malformed".split()


def network():
    """The bridge in the namespace `far` with its server's address, and an interface with an address
    for each lease."""
    ip("", "link set lo up", "netns add far")
    quiet = "for all in all default; do echo 1 > /proc/sys/net/ipv6/conf/$all/disable_ipv6; done"
    for where in (["ip", "netns", "exec", "far"], []):
        subprocess.run([*where, "sh", "-c", quiet], check=True)
    ip("far", "link add bridge type bridge", "addr add 10.9.0.1/16 dev bridge", "link set bridge up")
    ip("", *(f"link add n{node} type veth peer name n{node} netns far" for node in range(NODES)))
    ip("far", *(f"link set n{node} master bridge up" for node in range(NODES)))
    for node in range(NODES):
        ip("", f"link set n{node} up", f"addr add {address(node)}/16 dev n{node}")


def address(node):
    """The lease of an interface."""
    return f"10.9.1.{node + 1}"


def progress(node):
    """One entry of state.json, as `up` leaves it."""
    place = Path(f"/sys/class/net/n{node}")
    asked = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
    lease = {"address": address(node), "prefix": 16, "server": "10.9.0.1", "requested_ns": asked, "seconds": LEASE}
    return {
        "interface": f"n{node}",
        "index": int((place / "ifindex").read_text()),
        "hardware_type": 1,
        "client_id": "01:" + (place / "address").read_text().strip(),
        "state": "BOUND",
        "counts": dict.fromkeys(COUNTS, 0),
        "lease": lease | {"renew_s": 5, "rebind_s": LEASE - 1},
        "wish": {"client_id": "firmware", "tries": 1, "keep": True},
        "gave_up": False,
    }


def hand_over():
    """state.json with a lease for each interface."""
    Path("/run/ibboot").mkdir(mode=0o755)
    state = {
        "schema": 1,
        "ibboot": "bench",
        "boot_id": Path("/proc/sys/kernel/random/boot_id").read_text().strip(),
        "outcome": "verified",
        "reason": None,
        "links": [],
        "dhcp": [progress(node) for node in range(NODES)],
        "failures": [],
        "marks": [],
    }
    Path("/run/ibboot/state.json").write_text(json.dumps(state))


def resident(keeper):
    """VmRSS in bytes."""
    if (code := keeper.poll()) is not None:
        told = Path("/run/keeper.log").read_text().strip().splitlines()
        raise Unmeasured(f"ibboot lease ended with {code}: {told[-1] if told else 'nothing said'}")
    status = Path(f"/proc/{keeper.pid}/status").read_text()
    return int(re.search(r"^VmRSS:\s+(\d+) kB", status, re.M).group(1)) * 1024


def soak(program, pairs, renewals):
    """{"pairs", "renewals", "rss": bytes at each measurement, "seconds", "cpu"}"""
    subprocess.run(["mount", "-t", "tmpfs", "soak", "/run"], check=True)
    subprocess.run(["mount", "-t", "sysfs", "soak", "/sys"], check=True)
    network()
    with open("/run/dnsmasq.log", "w") as log:
        inside("far", *SERVER, stdout=log, stderr=log)
    until("dnsmasq is there", lambda: "DHCP, " in Path("/run/dnsmasq.log").read_text())
    hand_over()
    began, looks, made, renewed = time.monotonic(), [], 0, 0
    with open("/run/keeper.log", "w") as log:
        keeper = subprocess.Popen([program, "-v", "lease"], stdout=log, stderr=log)
    # The log is read while it grows, so that it uses no memory of this process or of the tmpfs.
    with open("/run/keeper.log") as log:
        while made < pairs or renewed < renewals:
            if time.monotonic() - began > DEADLINE_SECONDS:
                raise Unmeasured(f"{made} pairs and {renewed} renewals after {DEADLINE_SECONDS} s")
            if made < pairs:
                names = range(made, made + PAIRS_AT_ONCE)
                ip("", *(f"link add c{at} type veth peer name d{at}" for at in names), *(f"link del c{at}" for at in names))
                made += PAIRS_AT_ONCE
            else:
                time.sleep(1)
            renewed += sum(" renewed by " in line for line in log.readlines())
            if made >= WARM_PAIRS and renewed >= WARM_RENEWALS:
                looks.append(resident(keeper))
    resident(keeper)
    fields = Path(f"/proc/{keeper.pid}/stat").read_text().rpartition(")")[2].split()
    cpu = sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")
    keeper.terminate()
    if (code := keeper.wait()) != 0:
        raise Unmeasured(f"ibboot lease ended with {code} at SIGTERM")
    return {"pairs": made, "renewals": renewed, "rss": looks, "seconds": time.monotonic() - began, "cpu": cpu}


def measure(table, program):
    """Run the soak in private namespaces, which leave nothing behind."""
    argv = ["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", sys.executable, "-m"]
    environment = {**os.environ, "PYTHONPATH": f"{TESTS}:{TESTS.parent / 'qemu'}"}
    argv += ["benchmark.soak", str(program), str(PAIRS), str(RENEWALS)]
    done = subprocess.run(argv, capture_output=True, text=True, env=environment)
    if done.returncode != 0:
        raise Unmeasured((done.stderr.strip().splitlines() or ["nothing said"])[-1])
    found = json.loads(done.stdout)
    least, most = min(found["rss"]), max(found["rss"])
    table.add("ibboot lease, soaked: least RSS", MEBIBYTES, least)
    table.add("ibboot lease, soaked: greatest RSS", MEBIBYTES, most)
    table.add("ibboot lease, soaked: greatest in times of least", TIMES, most / least, GROWTH_BUDGET)
    table.note(
        f"soak: {found['pairs']} veth pairs made and removed beside {found['renewals']} renewals of {NODES} leases in"
        f" {found['seconds']:.0f} s, {found['cpu']:.0f} s of processor time; {len(found['rss'])} looks, the first"
        f" {found['rss'][0] / MEBIBYTES.size:.2f} MiB, the last {found['rss'][-1] / MEBIBYTES.size:.2f} MiB"
    )
    say(f"soak: {least} to {most} bytes")


if __name__ == "__main__":
    print(json.dumps(soak(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))))

# SPDX-License-Identifier: MIT OR Apache-2.0
"""A thousand nodes are powered on at once: one dnsmasq serves them, and the DHCP client of each node
is a process on its own interface.

The interfaces are veth pairs: their near ends are in fifty namespaces, their far ends on one bridge
that isolates the nodes from each other. All processes wait and start together. A client that ends
with success has its lease; the packets are those that the server's end received, dropped and sent
(UDP in /proc/net/snmp). Everything runs in namespaces that end with the process that created them.

`PYTHONPATH=tests python3 -m benchmark.storm COMMAND` runs inside and prints JSON.
"""

import json
import os
import select
import subprocess
import sys
import time
from pathlib import Path

from .table import SECONDS, Unit, Unmeasured, compare, say

TESTS = Path(__file__).resolve().parent.parent
NODES = 1000
NAMESPACES = 50
DEADLINE_SECONDS = 120
OURS = "ibboot"
# NODE is the interface. No client applies its lease.
PEERS = {
    "busybox udhcpc": "busybox udhcpc -f -q -s /bin/true -i NODE",
    "dhclient": "dhclient -4 -1 -cf /dev/null -sf /bin/true -lf /run/NODE.leases -pf /run/NODE.pid NODE",
}
PACKETS = Unit("packets", 1.0, 2)
NETWORK = "10.9.0.1/16"
SERVER = [
    *("dnsmasq", "--keep-in-foreground", "--conf-file=/dev/null", "--port=0", "--no-ping", "--user=root", "--pid-file"),
    *("--log-facility=-", "--quiet-dhcp", f"--dhcp-lease-max={2 * NODES}", "--dhcp-leasefile=/run/dnsmasq.leases"),
    "--dhcp-range=10.9.1.0,10.9.8.255,255.255.0.0,1h",
]
# Each node reports when it is ready, and how its client ended.
WAITING = """for node; do
    (echo ready >&3; : < /run/gate; %s > /dev/null 2>&1; echo $? >&3) &
done
wait"""


def inside(namespace, *words, **more):
    """A program in a namespace, with the /sys of that namespace."""
    return subprocess.Popen(["ip", "netns", "exec", namespace, *words], **more)


def ip(namespace, *lines):
    """Run lines of ip(8) in a namespace; "" is this one."""
    where = ["-n", namespace] if namespace else []
    subprocess.run(["ip", *where, "-batch", "-"], input="\n".join(lines), text=True, check=True)


def until(what, holds):
    """Wait until a condition holds."""
    end = time.monotonic() + DEADLINE_SECONDS
    while not holds():
        if time.monotonic() > end:
            raise Unmeasured(f"never: {what}")
        time.sleep(0.1)


def carry(namespace, count):
    """Whether this many veth ends send packets: the kernel needs some time for that."""
    done = subprocess.run(["ip", "-n", namespace, "link", "show", "type", "veth"], capture_output=True, text=True)
    return done.stdout.count("qdisc noqueue") == count and done.stdout.count(" state UP ") == count


def network():
    """{namespace: its interfaces}; the server's end is a bridge in the namespace `far`."""
    places = {f"near{at}": [f"n{node}" for node in range(at, NODES, NAMESPACES)] for at in range(NAMESPACES)}
    ip("", *(f"netns add {name}" for name in ("far", *places)))
    for name in ("far", *places):
        quiet = "for all in all default; do echo 1 > /proc/sys/net/ipv6/conf/$all/disable_ipv6; done"
        inside(name, "sh", "-c", quiet).wait()
    ip("far", "link add bridge type bridge", f"addr add {NETWORK} dev bridge", "link set bridge up")
    for name, nodes in places.items():
        ip("", *(f"link add {node} netns {name} type veth peer name {node} netns far" for node in nodes))
        ip("far", *(f"link set {node} master bridge up" for node in nodes))
        ip("far", *(f"link set {node} type bridge_slave isolated on" for node in nodes))
        ip(name, *(f"link set {node} up" for node in nodes))
    for name, nodes in places.items():
        until(f"{name} has carrier", lambda name=name, nodes=nodes: carry(name, len(nodes)))
    until("the bridge has carrier", lambda: carry("far", NODES))
    return places


def packets():
    """(received, dropped by a full buffer, sent) datagrams of UDP at the server's end."""
    done = inside("far", "cat", "/proc/net/snmp", stdout=subprocess.PIPE, text=True)
    names, numbers = (line.split()[1:] for line in done.communicate()[0].splitlines() if line.startswith("Udp:"))
    counts = dict(zip(names, map(int, numbers)))
    return counts["InDatagrams"], counts["RcvbufErrors"], counts["OutDatagrams"]


def lines(reader, count, deadline):
    """[(time, line)] until there are enough lines or the deadline passes."""
    found, rest = [], b""
    while len(found) < count and (left := deadline - time.monotonic()) > 0:
        if select.select([reader], [], [], left)[0]:
            *whole, rest = (rest + os.read(reader, 1 << 16)).split(b"\n")
            found += [(time.monotonic(), line.decode()) for line in whole]
    return found


def storm(command):
    """{"times": seconds of each lease, ascending, "packets": (received, dropped, sent)}"""
    subprocess.run(["mount", "-t", "tmpfs", "storm", "/run"], check=True)
    places = network()
    os.mkfifo("/run/gate")
    reader, writer = os.pipe()
    with open("/run/dnsmasq.log", "w") as log:
        inside("far", *SERVER, stdout=log, stderr=log)
    until("dnsmasq is there", lambda: "DHCP, " in Path("/run/dnsmasq.log").read_text())
    script = WAITING % command.replace("NODE", '"$node"')
    for name, nodes in places.items():
        inside(name, "sh", "-c", f"exec 3>&{writer}; {script}", "sh", *nodes, pass_fds=[writer])
    ready = lines(reader, NODES, time.monotonic() + DEADLINE_SECONDS)
    if len(ready) < NODES:
        raise Unmeasured(f"only {len(ready)} of {NODES} clients could be started")
    before = packets()
    gate = os.open("/run/gate", os.O_WRONLY)
    began = time.monotonic()
    ended = lines(reader, NODES, began + DEADLINE_SECONDS)
    after = packets()
    os.close(gate)
    times = [when - began for when, code in ended if code == "0"]
    return {"times": times, "packets": [now - then for now, then in zip(after, before)]}


def run(name, command):
    """Run a storm in private namespaces, which leave nothing behind."""
    argv = ["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", sys.executable, "-m"]
    environment = {**os.environ, "PYTHONPATH": f"{TESTS}:{TESTS.parent / 'qemu'}"}
    done = subprocess.run([*argv, "benchmark.storm", command], capture_output=True, text=True, env=environment)
    if done.returncode != 0:
        raise Unmeasured(f"{name}: {(done.stderr.strip().splitlines() or ['nothing said'])[-1]}")
    found = json.loads(done.stdout)
    say(f"storm, {name}: {len(found['times'])} of {NODES} have a lease, {found['packets']} packets in, dropped, out")
    return found


def measure(table, client):
    """One storm for each client."""
    found = {OURS: run(OURS, f"{client} NODE")}
    for name, command in PEERS.items():
        found[name] = run(name, command)
    if (count := len(found[OURS]["times"])) < NODES:
        raise Unmeasured(f"only {count} of {NODES} have a lease after {DEADLINE_SECONDS} s")

    def at(name, share):
        times, wanted = found[name]["times"], round(NODES * share)
        return times[wanted - 1 : wanted]

    for what, share in (("50 %", 0.5), ("99 %", 0.99), ("all", 1.0)):
        times = {name: at(name, share) for name in found}
        compare(table, f"{NODES} clients, {what} have their lease", SECONDS, OURS, times)
    leases = {name: [sum(each["packets"]) / len(each["times"])] if each["times"] else [] for name, each in found.items()}
    compare(table, f"{NODES} clients, packets per lease at the server", PACKETS, OURS, leases)
    for name, each in found.items():
        received, dropped, sent = each["packets"]
        table.note(
            f"storm, {name}: {len(each['times'])} leases; the server received {received}, had no room for {dropped}"
            f" and sent {sent}"
        )


if __name__ == "__main__":
    print(json.dumps(storm(sys.argv[1])))

# SPDX-License-Identifier: MIT OR Apache-2.0
"""Every invalid argument is named, where it stands in /proc/cmdline, with what is wrong about it."""

WRONG = {
    "rd.ib.modee=connected": "unknown argument; did you mean rd.ib.mode?",
    "rd.ib.mode=ib0:fast": "'fast' is not an IPoIB mode; write auto, connected or datagram",
    "rd.ib.mtu=ib0:lots": "'lots' is not an MTU; write max or a number from 68 to 65535",
    "rd.ib.link=rxe1:vaporware:eth1": "'vaporware' is not a kind of link; write rxe or siw",
    "rd.ib.link=rxe2": "the kind of the link is missing; write NAME:rxe:NETDEV or NAME:siw:NETDEV",
    "rd.ib.roce=v3": "'v3' is not a RoCE mode; write v1 or v2",
    "rd.ib.porttype=token-ring": "the port type is missing; write SELECTOR:ib, SELECTOR:eth or SELECTOR:auto",
    "rd.ib.require=0": "'0' is not a number of ports; write a number from 1 to 4096",
    "rd.ib.rate=quick": "'quick' is not a rate in Gb/s; write a number such as 100 or 2.5, at most 10000",
    "rd.ib.timeout=soon": "'soon' is not a number of seconds; write a number from 1 to 1000000000",
    "rd.ib.onfail=panic": "'panic' is not an action on failure; write shell, continue or reboot",
    "rd.ib.handover=windows": "'windows' is not a value of this argument; write auto, keep, nm, networkd or none",
    "rd.ib.async_probe=maybe": "'maybe' counts as 1; write 0, no or off to turn the argument off",
    "ib.pkey=ib0.zzzz": "'ib0.zzzz' is not a partition; write PARENT.PKEY, such as ib0.8004: "
    "up to four hexadecimal digits, not 0 and not 8000",
    "ip=ib0:dhpc": "'dhpc' is not a method of ip=; did you mean dhcp?",
}


def verify(boot):
    found = boot.first(r"Command line: ")
    if found is None:
        yield "kmsg: no line with the command line"
        return
    cmdline = found[1].partition("Command line: ")[2]
    lines = [text for _, text in boot.kmsg]
    for argument, complaint in WRONG.items():
        # Of an unknown argument the value is not shown.
        shown = argument.partition("=")[0] + "=****" if complaint.startswith("unknown") else argument
        expected = f"ibboot: /proc/cmdline:{f'{cmdline} '.index(f'{argument} ') + 1}: {shown}: {complaint}"
        if expected not in lines:
            yield f"kmsg: no line {expected!r}"

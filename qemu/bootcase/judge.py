# SPDX-License-Identifier: MIT OR Apache-2.0
"""Compare the files of a boot with the expectations of its case: a list of faults, empty if the
case passed."""

import importlib.util
import re

# A line that names a cause ends in the name of its check.
DIAGNOSIS = re.compile(r"ibboot: waiting: .*\[[a-z0-9_]+\.[a-z0-9_]+\]$")
NOTHING = "nothing"
# A warning of Linux before 6.19 has "WARNING: CPU: 0 PID: 1 at", that of a later one ends in "CPU#0: NAME/1"; a
# trace of arm64 begins with a small letter.
BROKEN = re.compile(
    r"Kernel panic|BUG: |WARNING: (CPU: |.*CPU#)|Oops|Call [Tt]race|Segmentation fault|segfault at|general protection fault|hung_task|refcount_t: "
    r"|boot-test: FAILED"
)


def faults(case, boot):
    """All faults of one boot, one line each."""
    found = []
    found += ending(case, boot)
    found += emulator(boot)
    found += files(case, boot)
    found += [f"action: {why}" for why in boot.missed]
    found += verdict(case, boot)
    found += console(case, boot)
    found += kmsg(case, boot)
    found += diagnoses(case, boot)
    found += real_root(case, boot)
    if not boot.timed_out and (path := case.script("verify.py")):
        found += host_side(path, boot)
    return found


def ending(case, boot):
    """The faults of the end of the guest."""
    if boot.timed_out:
        return [f"still running after {boot.seconds:.0f} s; the console's last line: {last_line(boot)}"]
    stages = (boot.text("out/stages") or "").split()
    if case.ends == "dump":
        return dump(boot, stages)
    if case.ends == "root" and "root" not in stages:
        return [f"the real root was not reached ({boot.shutdown or 'no shutdown found'}); last line: {last_line(boot)}"]
    if case.ends != "root" and "root" in stages:
        return ["the real root was reached; expected: not reached"]
    if case.ends == "emergency" and "emergency" not in stages:
        return [f"no emergency shell; last line: {last_line(boot)}"]
    if case.ends == "reboot" and boot.shutdown != "guest-reset":
        return [f"no reboot: the guest ended by {boot.shutdown or 'itself'}"]
    return []


def emulator(boot):
    """The faults of QEMU: it did not start, or it refused a command, such as that of a cable."""
    refused = re.findall(r'"error": \{.*?"desc": "(.*?)"', (boot.folder / "qmp.log").read_text())
    told = boot.folder / "qemu.err"
    if last_line(boot) == NOTHING and told.exists():
        refused += told.read_text(errors="replace").strip().splitlines()[-1:]
    return [f"QEMU: {why}" for why in refused]


def files(case, boot):
    """The faults of the guest's files: without its kernel log no pattern can fail. A crash kernel sends
    no log."""
    if boot.timed_out or case.ends == "dump":
        return []
    found = [] if boot.kmsg else ["kmsg.txt: the log of the guest's kernel is missing"]
    damaged = boot.folder / "files.error"
    if damaged.exists():
        found.append(f"files.tar: {damaged.read_text().strip()}")
    return found


def dump(boot, stages):
    """The faults of a crash: the dump must be written before anything else ends the guest."""
    if "dump" not in stages:
        output = (boot.text("out/root.txt") or "").strip()
        return [f"no dump was written ({boot.shutdown or 'no shutdown found'}); last line: {last_line(boot)} {output}".rstrip()]
    text = boot.text("out/dump.txt") or ""
    patterns = (r"^written$", r"^CRASHTIME=\d+$")
    return [f"dump.txt: no line matches {pattern!r}: {text!r}" for pattern in patterns if not re.search(pattern, text, re.M)]


def unbroken(case, lines):
    """The lines without the trace of an expected crash, which ends where the next kernel
    begins."""
    crash = next((at for at, line in enumerate(lines) if "sysrq: Trigger a crash" in line), None)
    if not case.crash or crash is None:
        return lines
    end = next((at for at in range(crash, len(lines)) if "</TASK>" in lines[at]), len(lines))
    return lines[:crash] + lines[end:]


def last_line(boot):
    """The last non-empty line of the console."""
    return next((line.strip() for line in reversed(boot.console) if line.strip()), NOTHING)


def verdict(case, boot):
    """The faults of /run/ibboot/result: the verdict, and the reason on the second line."""
    text = boot.text("run/result")
    if case.result is None:
        return [] if text is None else [f"result: {text.strip()!r}, expected: none"]
    if text is None:
        return [f"result: absent, expected {case.result!r}"]
    first, _, rest = text.partition("\n")
    found = []
    if first != case.result:
        found.append(f"result: {first!r}, expected {case.result!r}: {rest.strip()}")
    elif case.reason is not None and not re.fullmatch(case.reason, rest.strip()):
        found.append(f"reason: {rest.strip()!r} does not match {case.reason!r}")
    # `ibboot up` would go on without these hooks, when dracut's own file appears.
    if case.ends == "root" and boot.text("run/complete") is None:
        found.append("/run/ibboot/complete: absent: the cmdline hooks of ibboot did not run")
    return found


def console(case, boot):
    """The faults of the console: required and forbidden lines."""
    found = [f"console: no line matches {pattern!r}" for pattern in case.console if not any(re.search(pattern, line) for line in boot.console)]
    for pattern in case.console_not:
        if line := next((line for line in boot.console if re.search(pattern, line)), None):
            found.append(f"console: {line.strip()!r} matches {pattern!r}, expected: no such line")
    # A quiet console has the lines of the levels 0 to 3 only.
    log = [text for _, text in boot.kmsg]
    for name, lines in (("console", unbroken(case, boot.console)), ("peer.log", boot.peer), ("kmsg", unbroken(case, log))):
        if line := next((line for line in lines if BROKEN.search(line)), None):
            found.append(f"{name}: {line.strip()}")
    return found


def kmsg(case, boot):
    """The faults of the kernel's log: forbidden lines, and whole lines in the required order."""
    for pattern in case.kmsg_not:
        if found := boot.first(pattern):
            return [f"kmsg: {found[1]!r} matches {pattern!r}, expected: no such line"]
    rest = [text for _, text in boot.kmsg]
    for pattern in case.kmsg:
        at = next((number for number, text in enumerate(rest) if re.fullmatch(pattern, text)), None)
        if at is None:
            where = "after the previous one " if pattern != case.kmsg[0] else ""
            return [f"kmsg: no line {where}matches {pattern!r}"]
        rest = rest[at + 1 :]
    return []


def diagnoses(case, boot):
    """The causes that ibboot named before it verified the links and that the case does not declare as
    true: false alarms."""
    if case.result != "verified":
        return []
    expected = (*case.kmsg, *case.diagnoses)
    named = [text for _, text in boot.kmsg if DIAGNOSIS.search(text)]
    alarms = [text for text in named if not any(re.fullmatch(pattern, text) for pattern in expected)]
    return [f"a false alarm, or a true cause without a pattern in diagnoses: {text!r}" for text in alarms]


def real_root(case, boot):
    """The faults of the check after boot, by the unit and by hand, and of the case's own script."""
    if case.ends != "root":
        return []
    found = []
    if case.check_exit is not None:
        unit = dict(line.split("=", 1) for line in (boot.text("out/check.unit") or "").splitlines() if "=" in line)
        # The unit knows two codes: a warning is a success.
        of_unit = int(case.check_exit > 1)
        if unit.get("ConditionResult") != "yes":
            found.append("ibboot-check.service: did not run")
        elif unit.get("ExecMainStatus") != str(of_unit):
            found.append(f"ibboot-check.service: exit {unit.get('ExecMainStatus')}, expected {of_unit}")
        by_hand = (boot.text("out/check.exit") or "").strip()
        if by_hand != str(case.check_exit):
            found.append(f"ibboot check: exit {by_hand or 'unknown'}, expected {case.check_exit}: {first_line(boot.text('out/check.txt'))}")
    if case.script("root.sh"):
        code = (boot.text("out/root.exit") or "").strip()
        if code != "0":
            output = (boot.text("out/root.txt") or "").strip().splitlines()
            found.append(f"root.sh: exit {code or 'unknown'}: {output[-1] if output else 'no output'}")
    return found


def first_line(text):
    """The first line of a file, if the file exists."""
    return (text or "").strip().partition("\n")[0]


def host_side(path, boot):
    """The case's verify.py: its verify(boot) yields faults. An exception is one more: verify.py may rest
    on a file that a failed boot did not leave, and must not hide why that boot failed."""
    spec = importlib.util.spec_from_file_location(f"case_{path.parent.name}", path)
    module = importlib.util.module_from_spec(spec)
    found = []
    try:
        spec.loader.exec_module(module)
        found.extend(module.verify(boot))
    except Exception as error:  # noqa: BLE001
        found.append(f"verify.py: {type(error).__name__}: {error}")
    return found

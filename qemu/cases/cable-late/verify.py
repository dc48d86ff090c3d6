# SPDX-License-Identifier: MIT OR Apache-2.0
"""It is verified after the training, and the training is no reason to wait for more."""

TRAINING = 8.0
# opensm sweeps once a second; the rest is for a machine with much else to do.
AFTER = 20.0


def verify(boot):
    plugged = boot.first("boot-test: the cable is plugged in")
    verified = boot.first(r"ibboot: ib0 \(softib0/1\): verified: ")
    if None in (plugged, verified):
        yield f"kmsg: a line is missing: plugged in {plugged}, verified {verified}"
        return
    took = verified[0] - plugged[0]
    if not TRAINING <= took < TRAINING + AFTER:
        yield f"verified {took:.1f} s after the cable came, expected {TRAINING} s of training and less than {AFTER} s more"

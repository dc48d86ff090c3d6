# SPDX-License-Identifier: MIT OR Apache-2.0
"""The two members of an MD RAID 0 with a file system in it, made without the kernel's md: struct mdp_superblock_1 of
include/uapi/linux/raid/md_p.h, version 1.2."""

import struct

SECTOR = 512
CHUNK = 1024
# Both in sectors: where the superblock of version 1.2 is, and where the data begins.
SUPERBLOCK, DATA = 8, 2048
UUID = bytes.fromhex("1bb00700000040008000000000000002")
MEMBERS = 2
# Identity, then geometry and level changes, then this member, then times and checksum, then the members' roles.
LAYOUT = f"<4I16s32sQ2IQ3I I QIIII 4Q2I16s2BHI 3Q2I32x {MEMBERS}H"
CHECKSUM = 216
# Any time will do.
CREATED = 1767225600


def superblock(member, sectors):
    """The superblock of a member, with `sectors` of data in each."""
    name = b"ibboot-test:disk"
    identity = (0xA92B4EFC, 1, 0, 0, UUID, name, CREATED, 0, 0, sectors, CHUNK, MEMBERS, 0)
    no_change = (0, 0, 0, 0, 0, 0)
    own = (DATA, sectors, SUPERBLOCK, 0, member, 0, UUID[:-1] + bytes([16 + member]), 0, 0, 0, 0)
    state = (CREATED, 1, 0, 0, MEMBERS)
    block = bytearray(struct.pack(LAYOUT, *identity, *no_change, *own, *state, *range(MEMBERS)))
    # calc_sb_1_csum of drivers/md/md.c; the checksum itself counts as 0.
    total = sum(struct.unpack(f"<{len(block) // 4}I", block))
    struct.pack_into("<I", block, CHECKSUM, (total & 0xFFFFFFFF) + (total >> 32) & 0xFFFFFFFF)
    return bytes(block)


def split(whole, members):
    """Write the content of the file `whole` to the files `members`, a chunk to each in turn; zeros become holes."""
    size = CHUNK * SECTOR
    chunks = -(-whole.stat().st_size // size)
    sectors = -(-chunks // MEMBERS) * CHUNK
    with whole.open("rb") as source:
        files = [path.open("wb") for path in members]
        for number in range(chunks):
            data = source.read(size)
            if data.count(0) < len(data):
                out = files[number % MEMBERS]
                out.seek(DATA * SECTOR + number // MEMBERS * size)
                out.write(data)
        for member, out in enumerate(files):
            out.seek(SUPERBLOCK * SECTOR)
            out.write(superblock(member, sectors))
            out.truncate((DATA + sectors) * SECTOR)
            out.close()

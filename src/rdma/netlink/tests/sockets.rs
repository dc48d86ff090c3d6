// SPDX-License-Identifier: MIT OR Apache-2.0
//! Netlink sockets of the running kernel.

use super::*;

/// Every kernel answers NETLINK_ROUTE, for which `receive` is the same.
#[test]
fn only_the_kernel_is_accepted_and_nothing_is_truncated() {
    let protocol = SockProtocol::NetlinkRoute;
    let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
    let ours = open(flags, protocol, 0).unwrap();
    let mut buffer = vec![0; DATAGRAM];
    assert_eq!(receive(ours.as_fd(), &mut buffer), Err(Errno::EAGAIN));
    // RTM_GETLINK (type 18) without an interface: the kernel answers or returns an error.
    let mut request = vec![0; 32];
    request[0] = 32;
    request[4] = 18;
    request[6] = 5;
    for (room, expected) in [(DATAGRAM, None), (8, Some(Errno::EMSGSIZE))] {
        let kernel = NetlinkAddr::new(0, 0);
        socket::sendto(ours.as_raw_fd(), &request, &kernel, MsgFlags::empty()).unwrap();
        let answer = receive(ours.as_fd(), &mut buffer[..room]).map(|datagram| {
            let datagram = datagram.expect("from the kernel");
            wire::messages(datagram).all(|message| message.is_ok())
        });
        assert_eq!(answer, expected.map_or(Ok(true), Err));
        while receive(ours.as_fd(), &mut buffer) != Err(Errno::EAGAIN) {}
    }
    let theirs = open(flags, SockProtocol::NetlinkUserSock, 0).unwrap();
    let receiver = open(flags, SockProtocol::NetlinkUserSock, 0).unwrap();
    let name: NetlinkAddr = socket::getsockname(receiver.as_raw_fd()).unwrap();
    let to = NetlinkAddr::new(name.pid(), 0);
    socket::sendto(
        theirs.as_raw_fd(),
        b"not the kernel",
        &to,
        MsgFlags::empty(),
    )
    .unwrap();
    assert_eq!(receive(receiver.as_fd(), &mut buffer), Ok(None));
}

#[test]
fn open_succeeds_or_reports_that_ib_core_is_missing() {
    match Rdma::open() {
        Ok(rdma) => assert!(rdma.devices().is_ok()),
        Err(error) => {
            assert_eq!(error.raw_os_error(), Some(libc::EPROTONOSUPPORT));
            eprintln!(
                "skipped: open_succeeds_or_reports_that_ib_core_is_missing: this kernel has no ib_core"
            );
        }
    }
}

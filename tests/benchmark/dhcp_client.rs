// SPDX-License-Identifier: MIT OR Apache-2.0
//! `dhcp-client IF [infiniband]`: runs ibboot's DHCPv4 client on one interface until its lease, for
//! storm.py. With `infiniband` the client acts like an InfiniBand node and receives broadcast
//! answers (RFC 4390).

use std::process::ExitCode;
use std::time::Duration;

use ibboot::decoding;
use ibboot::dhcp::Outcome;
use ibboot::dhcp::hardware::Hardware;
use ibboot::dhcp::identity::RequestedId;
use ibboot::dhcp::v4::client::Config;
use ibboot::dhcp::v4::identity::Identity;
use ibboot::dhcp::v4::session::Session;
use ibboot::error::Error;
use ibboot::hardware::HardwareType;
use ibboot::system::clock::boottime_ns;
use ibboot::system::root::Root;
use ibboot::system::{decoder, worker};

/// A 20-byte address that contains the address of the interface.
fn as_infiniband(hardware: &[u8]) -> Vec<u8> {
    let mut address = vec![0; 20 - hardware.len().min(20)];
    address.extend(hardware.iter().take(20));
    address
}

async fn lease(interface: &str, is_infiniband: bool) -> Result<(), Error> {
    let hardware = Hardware::read(&Root::new("/"), interface)
        .map_err(|e| Error::io(interface, "hardware address cannot be read", &e))?;
    let wanted = RequestedId::Firmware;
    let identity = if is_infiniband {
        Identity::new(
            HardwareType::InfiniBand,
            &as_infiniband(&hardware.address),
            &wanted,
        )
    } else {
        Identity::new(hardware.hardware_type, &hardware.address, &wanted)
    };
    let identity = identity.ok_or_else(|| Error::new(interface, "not on this hardware"))?;
    let config = Config {
        identity,
        vendor_class: None,
        host_name: None,
        keep: false,
        boot_waits: true,
    };
    let mut session = Session::open(interface, hardware, config)?;
    session.start(None);
    while !session.outcomes().contains(&Outcome::Bound) {
        let due = session.due().unwrap_or(u64::MAX);
        let wait = Duration::from_nanos(due.saturating_sub(boottime_ns()));
        if tokio::time::timeout(wait, session.changed()).await.is_err() {
            session.wake();
        }
    }
    Ok(())
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    if words == [worker::COMMAND, decoder::JOB] {
        return match decoding::serve() {
            Ok(()) => ExitCode::SUCCESS,
            Err(_) => ExitCode::FAILURE,
        };
    }
    let (interface, is_infiniband) = match arguments.as_slice() {
        [interface] => (interface, false),
        [interface, word] if word == "infiniband" => (interface, true),
        _ => return ExitCode::from(64),
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    match runtime.map(|runtime| runtime.block_on(lease(interface, is_infiniband))) {
        Ok(Ok(())) => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! The loader's end: carries requests out until nobody needs it.

use std::cell::OnceCell;
use std::io;

use futures_util::stream::{FuturesUnordered, StreamExt};

use super::request::{Answer, Request, refused};
use super::{cards, files, index, probe};
use crate::error::Result;
use crate::system::modules::{self, Found, Index};
use crate::system::readiness::{event_loop, watched};
use crate::system::root::Root;
use crate::system::worker::{Master, Worker};

/// The worker. Modules are loaded and functions probed side by side, each by a process of its own;
/// a write is carried out at once.
pub fn serve() -> Result<()> {
    let failed = |error: io::Error| crate::error::Error::io("loader", "has failed", &error);
    let master = Master::of_process().into_worker().map_err(failed)?;
    event_loop()?
        .block_on(serve_on(&Root::new("/"), &master))
        .map_err(failed)
}

async fn serve_on(root: &Root, master: &Worker) -> io::Result<()> {
    let index = OnceCell::new();
    let ear = watched(master.ear()?)?;
    let mut running = FuturesUnordered::new();
    loop {
        tokio::select! {
            Some(answer) = running.next() => master.send(&answer)?,
            ready = ear.readable() => match master.receive::<(u32, Request)>() {
                Ok(Some((number, request))) => {
                    let index = &index;
                    running.push(async move {
                        (number, carry_out(root, index, request).await)
                    });
                }
                Ok(None) => ready?.clear_ready(),
                Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => return Ok(()),
                Err(error) => return Err(error),
            },
        }
    }
}

async fn carry_out(root: &Root, index: &OnceCell<Index>, request: Request) -> Answer {
    let done = match request.check() {
        Err(error) => Err(error),
        Ok(()) => match &request {
            Request::Load { module, parameters } => load(root, index, module, parameters).await,
            Request::Probe(address) => probe::carry_out(address).await,
            Request::PortTypes { card, ports } => {
                return Answer::Ports(cards::set_port_types(root, card, ports));
            }
            Request::Write(write) => files::carry_out(root, write),
            Request::Index => read_once(root, index).and_then(index::save),
        },
    };
    Answer::Done(done)
}

/// Loads a module that the image has, and that is one of the RDMA stack or the driver of bonds: the
/// index has no other.
async fn load(
    root: &Root,
    index: &OnceCell<Index>,
    module: &str,
    parameters: &[String],
) -> Result<()> {
    let index = read_once(root, index)?;
    match index.find(module) {
        Found::Missing => Err(refused("module", module)),
        _ => modules::load(root, index, module, parameters).await,
    }
}

fn read_once<'a>(root: &Root, index: &'a OnceCell<Index>) -> Result<&'a Index> {
    match index.get() {
        Some(index) => Ok(index),
        None => {
            let read = Index::read(root)?;
            Ok(index.get_or_init(|| read))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::loader::request::Write;
    use crate::wish::ipoib::Mode;

    /// The answers to the requests, by number.
    async fn answers(root: &Root, requests: &[Request]) -> Vec<(u32, Answer)> {
        let (near, far) = Worker::pair().unwrap();
        let far = Worker::at(far);
        for (number, request) in (0_u32..).zip(requests) {
            near.send(&(number, request)).unwrap();
        }
        let ear = watched(near.ear().unwrap()).unwrap();
        let receive = async {
            let mut all = Vec::new();
            while all.len() < requests.len() {
                let mut ready = ear.readable().await.unwrap();
                match near.receive().unwrap() {
                    Some(answer) => all.push(answer),
                    None => ready.clear_ready(),
                }
            }
            all.sort_by_key(|(number, _)| *number);
            all
        };
        tokio::select! {
            end = serve_on(root, &far) => panic!("{end:?}"),
            all = receive => all,
        }
    }

    #[tokio::test]
    async fn requests_are_checked_and_carried_out() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("sys/class/net/ib0");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("mode"), "datagram\n").unwrap();
        fs::create_dir_all(dir.path().join("proc/sys/kernel")).unwrap();
        fs::write(dir.path().join("proc/sys/kernel/osrelease"), "6.1.0\n").unwrap();
        let mode = |interface: &str| {
            Request::Write(Write::Mode {
                interface: interface.to_owned(),
                mode: Mode::Connected,
            })
        };
        let load = Request::Load {
            module: "ext4".to_owned(),
            parameters: Vec::new(),
        };
        let root = Root::new(dir.path());
        let all = answers(&root, &[mode("ib0"), mode("../ib0"), load]).await;
        let texts = all.iter().map(|(_, answer)| match answer {
            Answer::Done(Err(error)) => error.to_string(),
            other => format!("{other:?}"),
        });
        assert_eq!(
            texts.collect::<Vec<_>>(),
            [
                "Done(Ok(()))",
                "loader: interface name refused: ../ib0",
                "loader: module refused: ext4",
            ]
        );
        assert_eq!(
            fs::read_to_string(folder.join("mode")).unwrap(),
            "connected\n"
        );
    }

    #[tokio::test]
    async fn the_loader_ends_when_nobody_needs_it() {
        let (near, far) = Worker::pair().unwrap();
        drop(near);
        let end = serve_on(&Root::new("/"), &Worker::at(far)).await;
        assert!(end.is_ok(), "{end:?}");
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! The loader's end: carries requests out until nobody needs it.

use std::cell::OnceCell;
use std::io;

use futures_util::stream::{FuturesUnordered, StreamExt};

use super::request::{Answer, Request, refused};
use super::{index, write};
use crate::error::Result;
use crate::system::modprobe;
use crate::system::modules::{Found, Index, live, normal};
use crate::system::pci;
use crate::system::readiness::{event_loop, watched};
use crate::system::root::Root;
use crate::system::worker::{Master, Worker};

/// The worker. Requests are carried out side by side: a module is loaded by modprobe, a probe or a
/// write is done by a process of its own.
pub fn serve() -> Result<()> {
    let failed = |error: io::Error| crate::error::Error::io("loader", "has failed", &error);
    let master = Master::of_process().into_worker().map_err(failed)?;
    let start = || Worker::start(&[write::JOB]);
    event_loop()?
        .block_on(serve_on(&Root::new("/"), &start, &master))
        .map_err(failed)
}

/// Starts a worker with the job [`write::JOB`].
type Start<'a> = &'a dyn Fn() -> io::Result<Worker>;

async fn serve_on(root: &Root, start: Start<'_>, master: &Worker) -> io::Result<()> {
    let index = OnceCell::new();
    let ear = watched(master.ear()?)?;
    let mut running = FuturesUnordered::new();
    loop {
        tokio::select! {
            Some(answer) = running.next() => master.send_when_free(&answer).await?,
            ready = ear.readable() => match master.receive::<(u32, Request)>() {
                Ok(Some((number, request))) => {
                    let index = &index;
                    running.push(async move {
                        (number, carry_out(root, start, index, request).await)
                    });
                }
                Ok(None) => ready?.clear_ready(),
                Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => return Ok(()),
                Err(error) => return Err(error),
            },
        }
    }
}

async fn carry_out(
    root: &Root,
    start: Start<'_>,
    index: &OnceCell<Index>,
    request: Request,
) -> Answer {
    if let Err(error) = request.check().and_then(|()| is_for_hca(root, &request)) {
        return Answer::Done(Err(error));
    }
    Answer::Done(match &request {
        Request::Load { module, parameters } => load(root, index, module, parameters).await,
        Request::Index => read_once(root, index).and_then(index::save),
        Request::Probe(_) | Request::PortTypes { .. } | Request::Write(_) => {
            return write::by(start(), &request).await;
        }
    })
}

/// No other PCI function than that of an HCA is probed.
fn is_for_hca(root: &Root, request: &Request) -> Result<()> {
    match request {
        Request::Probe(address) if !pci::is_hca(root, address) => {
            Err(refused("PCI function", address))
        }
        _ => Ok(()),
    }
}

/// Loads a module of the RDMA stack, or the driver of bonds, that the image has: the index has no
/// other. Nothing is to be done for one that is live without a file.
async fn load(
    root: &Root,
    index: &OnceCell<Index>,
    module: &str,
    parameters: &[String],
) -> Result<()> {
    let index = read_once(root, index)?;
    match index.find(module) {
        // modprobe gets no name that the index does not have.
        Found::Missing if live(root).contains(&normal(module)) => Ok(()),
        Found::Missing => Err(refused("module", module)),
        _ => modprobe::load(root, index, module, parameters).await,
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

    use std::os::fd::AsFd;

    use nix::sys::socket::MsgFlags;

    use super::*;
    use crate::loader::request::{Interface, Write};
    use crate::system::worker::{receive_from, send_to};
    use crate::wish::ipoib::Mode;

    /// The answers to the first requests that are answered, `count` of them, by number.
    async fn answers(root: &Root, requests: &[Request], count: usize) -> Vec<(u32, Answer)> {
        let (near, far) = Worker::pair().unwrap();
        let far = Worker::at(far);
        for (number, request) in (0_u32..).zip(requests) {
            near.send(&(number, request)).unwrap();
        }
        let ear = watched(near.ear().unwrap()).unwrap();
        let receive = async {
            let mut all = Vec::new();
            while all.len() < count {
                let mut ready = ear.readable().await.unwrap();
                match near.receive().unwrap() {
                    Some(answer) => all.push(answer),
                    None => ready.clear_ready(),
                }
            }
            all.sort_by_key(|(number, _)| *number);
            all
        };
        let start = || worker(root);
        tokio::select! {
            end = serve_on(root, &start, &far) => panic!("{end:?}"),
            all = receive => all,
        }
    }

    /// A thread that does the job of a worker. It never answers about an interface `stuck`.
    fn worker(root: &Root) -> io::Result<Worker> {
        let (worker, far) = Worker::pair()?;
        let root = Root::new(root.path(""));
        std::thread::spawn(move || -> io::Result<()> {
            let request: Request = receive_from(far.as_fd(), MsgFlags::empty())?;
            if request.to_string().ends_with("stuck") {
                std::thread::park();
            }
            let answer = write::carry_out(&root, &request);
            send_to(far.as_fd(), &answer, MsgFlags::empty())
        });
        Ok(worker)
    }

    #[tokio::test]
    async fn requests_are_checked_and_carried_out() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("sys/class/net/ib0");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("mode"), "datagram\n").unwrap();
        fs::write(folder.join("ifindex"), "5\n").unwrap();
        fs::create_dir_all(dir.path().join("proc/sys/kernel")).unwrap();
        fs::write(dir.path().join("proc/sys/kernel/osrelease"), "6.1.0\n").unwrap();
        let mode = |name: &str| {
            let (name, mode) = (name.to_owned(), Mode::Connected);
            let interface = Interface { name, index: 5 };
            Request::Write(Write::Mode { interface, mode })
        };
        let load = |module: &str| Request::Load {
            module: module.to_owned(),
            parameters: Vec::new(),
        };
        for module in ["ext4", "mlx5_ib"] {
            let module = dir.path().join("sys/module").join(module);
            fs::create_dir_all(&module).unwrap();
            fs::write(module.join("initstate"), "live\n").unwrap();
        }
        for (address, modalias) in [
            (
                "0000:dc:00.0",
                "pci:v000015B3d0000101Bsv000015B3sd00000007bc02sc07i00",
            ),
            (
                "0000:00:1f.2",
                "pci:v00008086d00002922sv00001AF4sd00001100bc01sc06i01",
            ),
        ] {
            let function = dir.path().join("sys/bus/pci/devices").join(address);
            fs::create_dir_all(&function).unwrap();
            fs::write(function.join("modalias"), modalias).unwrap();
        }
        let probed = dir.path().join("sys/bus/pci/drivers_probe");
        fs::write(&probed, "").unwrap();
        let root = Root::new(dir.path());
        let probe = |address: &str| Request::Probe(address.to_owned());
        let requests = [
            mode("stuck"),
            mode("ib0"),
            mode("../ib0"),
            load("ext4"),
            probe("0000:dc:00.0"),
            probe("0000:00:1f.2"),
            probe("0000:00:00.0"),
            load("mlx5_ib"),
            load("mlx5_core"),
        ];
        // The write that does not end keeps nothing else.
        let all = answers(&root, &requests, 8).await;
        assert_eq!(fs::read_to_string(&probed).unwrap(), "0000:dc:00.0");
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
                "Done(Ok(()))",
                "loader: PCI function refused: 0000:00:1f.2",
                "loader: PCI function refused: 0000:00:00.0",
                "Done(Ok(()))",
                "loader: module refused: mlx5_core",
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
        let start = || Err(io::ErrorKind::NotFound.into());
        let end = serve_on(&Root::new("/"), &start, &Worker::at(far)).await;
        assert!(end.is_ok(), "{end:?}");
    }
}

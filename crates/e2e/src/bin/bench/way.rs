//! How the servers of the bench are reached: pods have addresses that no network uses, and while the bench runs a route leads these to
//! this machine, where one listener answers for all of them by the address that was dialled.

use std::net::{Ipv4Addr, SocketAddr};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use tokio::net::{TcpListener, TcpSocket};
use tokio::sync::oneshot;

/// How the addresses of pods begin. No network has addresses from 240 on, so none is hidden by leading them to this machine. Each kind has
/// its own: benches of two kinds may run on one machine, and each takes its route away when it ends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Range(pub(crate) u8);

/// How many connections may wait to be taken.
const WAITING: u32 = 4096;

impl Range {
    /// The address of the n-th pod.
    pub(crate) const fn address(self, number: u32) -> Ipv4Addr {
        let [_, second, third, fourth] = number.to_be_bytes();
        Ipv4Addr::new(self.0, second, third, fourth)
    }
}

/// Takes a port of all servers, reached by this machine only; 0 is any that is free.
pub(crate) fn bind(port: u16) -> Result<TcpSocket> {
    let socket = TcpSocket::new_v4()?;
    socket.set_reuseaddr(true)?;
    socket.bind_device(Some(b"lo")).context("the loopback device cannot be listened on")?;
    socket.bind(SocketAddr::from((Ipv4Addr::UNSPECIFIED, port))).with_context(|| {
        format!("port {port} of this machine is in use: by another bench, or by a server that must be stopped for this")
    })?;
    Ok(socket)
}

/// Running servers; they end when this is dropped.
pub(crate) struct Serving {
    /// Ends them by being dropped.
    _stop: oneshot::Sender<()>,
}

/// Serves in a thread of its own, so that nothing else in the bench keeps a server from answering.
pub(crate) fn serve<W>(sockets: Vec<TcpSocket>, work: W) -> Result<Serving>
where
    W: AsyncFnOnce(Vec<TcpListener>) + Send + 'static,
{
    let (stop, stopped) = oneshot::channel();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let listeners = {
        let _in_its_runtime = runtime.enter();
        sockets.into_iter().map(|socket| socket.listen(WAITING)).collect::<Result<Vec<_>, _>>()?
    };
    let work = move || {
        runtime.block_on(async move {
            tokio::select! {
                () = work(listeners) => {}
                _ = stopped => {}
            }
        });
    };
    std::thread::Builder::new().name("servers".to_owned()).spawn(work).context("no thread for the servers")?;
    Ok(Serving { _stop: stop })
}

/// The route by which this machine finds the addresses of the pods in itself. They are not in 127.0.0.0/8, which would need none:
/// Kubernetes refuses such addresses for the endpoints of Services, and would try again and again.
pub(crate) struct Way(Range);

impl Way {
    pub(crate) fn open(range: Range) -> Result<Self> {
        route("replace", range).context("pods of the bench need addresses that lead to this machine")?;
        Ok(Self(range))
    }
}

impl Drop for Way {
    fn drop(&mut self) {
        if let Err(error) = route("delete", self.0) {
            crate::say(format!("the route of the bench's pods stays: {error:#}"));
        }
    }
}

fn route(verb: &str, range: Range) -> Result<()> {
    let addresses = format!("{}.0.0.0/8", range.0);
    let words = ["route", verb, "local", &addresses, "dev", "lo", "table", "main"];
    let output = Command::new("ip").args(words).output().context("cannot run ip: install iproute2")?;
    ensure!(
        output.status.success(),
        "`ip {}` failed, which needs to be root: {}",
        words.join(" "),
        String::from_utf8_lossy(&output.stderr).trim()
    );
    Ok(())
}

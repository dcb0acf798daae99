//! Several sockets, and connections that begin over any of several paths.

use std::io;
use std::net::SocketAddr;

use fulmar_proto::{AddressPairs, ClientConfig, FourTuple, SocketId};
use tokio::runtime::Handle;

use super::{Endpoint, builder};
use crate::connection::{Connecting, Connection, Local};
use crate::error::{ConnectError, ConnectOverError};
use crate::happy_eyeballs;

impl Endpoint {
    /// Sends and receives over one more socket, for paths of its own: bound to the address of an interface, or to the interface.
    /// A server accepts connections there as well. Up to 16; a name that was given once is not given again.
    ///
    /// # Errors
    /// If the socket cannot be set up, or outside of a tokio runtime. `InvalidInput` if the endpoint has several workers, or too many
    /// sockets.
    pub fn add_socket(&self, socket: std::net::UdpSocket) -> io::Result<SocketId> {
        Handle::try_current().map_err(io::Error::other)?;
        let [worker] = self.shared.workers() else {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "one more socket is for one worker"));
        };
        let socket = builder::register(socket, &worker.runtime)?.with_dscp(worker.socket().dscp())?;
        let id = worker.more_sockets.add(socket)?;
        worker.ready.wake();
        Ok(id)
    }

    /// Closes a socket that was added. Nothing arrives any more on paths that use it: abandon them, or they fall silent. Returns
    /// whether there was one of this name.
    pub fn remove_socket(&self, id: SocketId) -> bool {
        let worker = &self.shared.workers()[0];
        let removed = worker.more_sockets.remove(id);
        worker.ready.wake();
        removed
    }

    /// Dials from one of several sockets or addresses of this end. See [`connect_with`](Self::connect_with).
    ///
    /// # Errors
    /// If nothing can be sent at all.
    pub fn connect_from(
        &self,
        config: ClientConfig,
        local: Local,
        addr: SocketAddr,
        server_name: &str,
    ) -> Result<Connecting, ConnectError> {
        self.dial(config, local.to(addr), server_name)
    }

    /// Dials over several pairs of addresses, the preferred one first, and keeps a path open over each if both ends have multipath
    /// (`TransportConfig::multipath`). As long as no attempt has succeeded another one begins every 250 ms, or when one
    /// fails; the first that succeeds stays, and the others are closed (RFC 8305).
    ///
    /// Cancelled, it closes all attempts.
    ///
    /// # Errors
    /// How the last attempt failed, if all have.
    pub async fn connect_over(
        &self,
        config: ClientConfig,
        pairs: &[(Local, SocketAddr)],
        server_name: &str,
    ) -> Result<Connection, ConnectOverError> {
        let attempts = happy_eyeballs::first(pairs, |(local, remote)| {
            let connecting = self.connect_from(config.clone(), local, remote, server_name)?;
            Ok(async { connecting.await.map_err(ConnectOverError::from) })
        });
        let connection =
            attempts.await.map_err(|mut failures| failures.pop().unwrap_or(ConnectOverError::NoAddress))?;
        connection.set_path_manager(AddressPairs::new(pairs.iter().map(|(local, remote)| local.to(*remote))));
        Ok(connection)
    }

    /// Keeps a path open from each of these to the address of the server that `connection` uses, as far as it can be reached from
    /// there.
    pub fn keep_paths(&self, connection: &Connection, locals: &[Local]) {
        let remote = connection.remote_address();
        let pairs = locals.iter().map(|local| local.to(remote));
        let reaches = |addrs: &FourTuple| self.shared.workers()[0].can_reach(addrs);
        connection.set_path_manager(AddressPairs::new(pairs.filter(reaches)));
    }
}

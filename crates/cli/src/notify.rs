//! Tells the manager of services that started this one how far it is (sd_notify(3)): systemd with `Type=notify`.

/// Tells it a state, `READY=1` or `STOPPING=1`. Where nobody wants to know, or cannot be told, nothing happens.
pub(crate) fn tell(state: &str) {
    #[cfg(unix)]
    if let Some(name) = std::env::var_os("NOTIFY_SOCKET")
        && let Err(error) = unix::send(&name, state)
    {
        tracing::warn!(%error, "the manager of services could not be told: {state}");
    }
    let _ = state;
}

#[cfg(unix)]
mod unix {
    use std::ffi::OsStr;
    use std::io;
    use std::os::unix::net::UnixDatagram;

    /// Sends to a socket: of a path, or of a name without a file, which begins with `@` here.
    pub(super) fn send(name: &OsStr, state: &str) -> io::Result<()> {
        let socket = UnixDatagram::unbound()?;
        #[cfg(target_os = "linux")]
        {
            use std::os::linux::net::SocketAddrExt;
            use std::os::unix::ffi::OsStrExt;
            use std::os::unix::net::SocketAddr;
            if let Some(name) = name.as_bytes().strip_prefix(b"@") {
                let address = SocketAddr::from_abstract_name(name)?;
                return socket.send_to_addr(state.as_bytes(), &address).map(drop);
            }
        }
        socket.send_to(state.as_bytes(), name).map(drop)
    }
}

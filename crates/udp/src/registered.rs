//! A socket as the runtime knows it.

pub(crate) use self::platform::{Registered, Socket};

#[cfg(unix)]
mod platform {
    use std::future::poll_fn;
    use std::io;
    use std::net::UdpSocket;
    use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
    use std::task::{Context, Poll, ready};

    use tokio::io::Interest;
    use tokio::io::unix::AsyncFd;

    /// What is registered.
    pub(crate) type Socket = UdpSocket;

    /// A socket that the runtime watches for what can be received, and for room to send only while it has none.
    ///
    /// Otherwise each datagram that has left would wake the runtime as soon as the kernel frees its memory, and a thread that
    /// waits for the answer would be woken twice for it.
    #[derive(Debug)]
    pub(crate) struct Registered {
        receiving: AsyncFd<Arc<UdpSocket>>,
        /// The same socket under another number, as each number is watched once.
        sender: Arc<UdpSocket>,
        /// While the socket is full.
        sending: Mutex<Option<AsyncFd<Arc<UdpSocket>>>>,
    }

    impl Registered {
        /// Registers a socket that does not block.
        pub(crate) fn new(socket: UdpSocket) -> io::Result<Self> {
            let sender = Arc::new(socket.try_clone()?);
            let receiving = watch(Arc::new(socket), Interest::READABLE)?;
            Ok(Self { receiving, sender, sending: Mutex::default() })
        }

        pub(crate) fn socket(&self) -> &UdpSocket {
            self.receiving.get_ref()
        }

        /// Calls `receive`, unless nothing is there. If that returns `WouldBlock`, nothing is there until the runtime hears of more.
        pub(crate) fn receive<R>(&self, receive: impl FnOnce() -> io::Result<R>) -> io::Result<R> {
            self.receiving.try_io(Interest::READABLE, |_| receive())
        }

        /// Calls `read`, which looks for errors of the socket, unless there are none.
        #[cfg(target_os = "linux")]
        pub(crate) fn read_error<R>(&self, read: impl FnOnce() -> io::Result<R>) -> io::Result<R> {
            self.receiving.try_io(Interest::ERROR, |_| read())
        }

        /// Calls `send`, unless the socket is known to be full.
        pub(crate) fn send<R>(&self, send: impl FnOnce() -> io::Result<R>) -> io::Result<R> {
            match &*self.sending() {
                Some(sending) => sending.try_io(Interest::WRITABLE, |_| send()),
                None => send(),
            }
        }

        pub(crate) async fn readable(&self) -> io::Result<()> {
            self.receiving.readable().await.map(drop)
        }

        pub(crate) async fn failed(&self) -> io::Result<()> {
            self.receiving.ready(Interest::ERROR).await.map(drop)
        }

        pub(crate) async fn writable(&self) -> io::Result<()> {
            poll_fn(|cx| self.poll_writable(cx)).await
        }

        pub(crate) fn poll_readable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
            self.receiving.poll_read_ready(cx).map_ok(drop)
        }

        /// To be asked when a call of [`send`](Self::send) has found the socket full.
        pub(crate) fn poll_writable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
            let mut sending = self.sending();
            let watched = match &*sending {
                Some(watched) => watched,
                None => sending.insert(watch(self.sender.clone(), Interest::WRITABLE)?),
            };
            let result = ready!(watched.poll_write_ready(cx)).map(drop);
            *sending = None;
            Poll::Ready(result)
        }

        fn sending(&self) -> MutexGuard<'_, Option<AsyncFd<Arc<UdpSocket>>>> {
            self.sending.lock().unwrap_or_else(PoisonError::into_inner)
        }
    }

    /// Has the runtime watch a socket.
    #[expect(unsafe_code, reason = "the runtime has no safe way to watch one direction alone")]
    fn watch(socket: Arc<UdpSocket>, interest: Interest) -> io::Result<AsyncFd<Arc<UdpSocket>>> {
        // SAFETY: the socket owns its descriptor, which stays open and the same as long as the socket lives, and what is returned
        // holds the socket.
        let watched = unsafe { AsyncFd::register_with_interest(socket, interest) };
        watched.map_err(io::Error::from)
    }
}

#[cfg(not(unix))]
mod platform {
    use std::io;
    use std::task::{Context, Poll};

    use tokio::io::Interest;
    use tokio::net::UdpSocket;

    /// What is registered.
    pub(crate) type Socket = UdpSocket;

    /// A socket that the runtime watches for both directions.
    #[derive(Debug)]
    pub(crate) struct Registered(UdpSocket);

    impl Registered {
        /// Registers a socket that does not block.
        pub(crate) fn new(socket: std::net::UdpSocket) -> io::Result<Self> {
            UdpSocket::from_std(socket).map(Self)
        }

        pub(crate) fn socket(&self) -> &UdpSocket {
            &self.0
        }

        /// Calls `receive`, unless nothing is there. If that returns `WouldBlock`, nothing is there until the runtime hears of more.
        pub(crate) fn receive<R>(&self, receive: impl FnOnce() -> io::Result<R>) -> io::Result<R> {
            self.0.try_io(Interest::READABLE, receive)
        }

        /// Calls `send`, unless the socket is known to be full.
        pub(crate) fn send<R>(&self, send: impl FnOnce() -> io::Result<R>) -> io::Result<R> {
            self.0.try_io(Interest::WRITABLE, send)
        }

        pub(crate) async fn readable(&self) -> io::Result<()> {
            self.0.readable().await
        }

        /// Never: there are no reports.
        pub(crate) async fn failed(&self) -> io::Result<()> {
            std::future::pending().await
        }

        pub(crate) async fn writable(&self) -> io::Result<()> {
            self.0.writable().await
        }

        pub(crate) fn poll_readable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
            self.0.poll_recv_ready(cx)
        }

        /// To be asked when a call of [`send`](Self::send) has found the socket full.
        pub(crate) fn poll_writable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
            self.0.poll_send_ready(cx)
        }
    }
}

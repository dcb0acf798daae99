//! Connections with several paths, over several addresses and sockets.

mod common;

use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::time::Duration;

use common::{ALPN, Identity, run, within};
use fulmar::{
    ConnectError, Connection, ConnectionError, Endpoint, Local, MultipathConfig, OpenPathError, PathError,
    PathEvent, PathUse, TransportConfig, VarInt,
};

const FIRST: Ipv4Addr = Ipv4Addr::LOCALHOST;
const SECOND: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);

/// Two endpoints that know each other, and where the server listens.
struct Ends {
    identity: Identity,
    server: Endpoint,
    client: Endpoint,
    addr: SocketAddr,
}

fn multipath() -> TransportConfig {
    TransportConfig { multipath: Some(MultipathConfig::default()), ..TransportConfig::default() }
}

impl Ends {
    /// The client's first socket is bound to `ip`.
    fn new(ip: Ipv4Addr) -> Self {
        let identity = Identity::new();
        let config = identity.server_config(multipath(), ALPN);
        let server = Endpoint::server(config, (Ipv4Addr::UNSPECIFIED, 0).into()).unwrap();
        let addr = (FIRST, server.local_addr().unwrap().port()).into();
        let client = Endpoint::client((ip, 0).into()).unwrap();
        client.set_default_client_config(identity.client_config(multipath(), ALPN));
        Self { identity, server, client, addr }
    }

    async fn connect(&self) -> (Connection, Connection) {
        let accept = async { self.server.accept().await.unwrap().await.unwrap() };
        let connect = async { self.client.connect(self.addr, "localhost").unwrap().await.unwrap() };
        tokio::join!(connect, accept)
    }

    /// One more socket of the client.
    fn socket(&self, ip: Ipv4Addr) -> Local {
        let socket = UdpSocket::bind((ip, 0)).unwrap();
        Local::Socket(self.client.add_socket(socket).unwrap())
    }
}

/// Opens a path as soon as the server has given a connection ID for it.
async fn open(connection: &Connection, local: Local, remote: SocketAddr) -> fulmar::Path {
    within(Duration::from_secs(5), async {
        connection.confirmed().await.unwrap();
        loop {
            match connection.open_path(local, remote) {
                Ok(path) => return path,
                Err(OpenPathError::NoConnectionId) => {
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
                Err(error) => panic!("{error}"),
            }
        }
    })
    .await
}

#[test]
fn a_path_can_be_opened_once_the_handshake_is_confirmed() {
    run(async {
        for _ in 0..10 {
            let ends = Ends::new(FIRST);
            let (accepted, dialled) = (async { ends.server.accept().await.unwrap().await.unwrap() }, async {
                let connection = ends.client.connect(ends.addr, "localhost").unwrap().await.unwrap();
                let path = open(&connection, ends.socket(SECOND), ends.addr).await;
                within(Duration::from_secs(5), path.validated()).await.unwrap();
                connection.confirmed().await.unwrap();
                connection
            });
            let (accepted, _dialled) = tokio::join!(accepted, dialled);
            accepted.confirmed().await.unwrap();
        }
    });
}

#[test]
fn a_path_that_cannot_be_is_not_opened() {
    run(async {
        let ends = Ends::new(FIRST);
        let (client, _server) = ends.connect().await;
        let Local::Socket(removed) = ends.socket(SECOND) else { unreachable!("it is a socket") };
        assert!(ends.client.remove_socket(removed));
        let impossible: [(Local, SocketAddr); 4] = [
            (Local::Socket(removed), ends.addr),
            (Local::Any, "[::1]:5".parse().unwrap()),
            (Local::Any, (FIRST, 0).into()),
            (Local::Ip("::1".parse().unwrap()), ends.addr),
        ];
        let config = ends.identity.client_config(multipath(), ALPN);
        for (local, remote) in impossible {
            let opened = client.open_path(local, remote).map(|path| path.id());
            assert_eq!(opened, Err(OpenPathError::Unreachable), "{local:?} {remote}");
            let dialled = ends.client.connect_from(config.clone(), local, remote, "localhost");
            assert!(matches!(dialled, Err(ConnectError::UnreachableAddress(_))), "{local:?} {remote}");
        }
    });
}

#[cfg(target_os = "linux")]
#[test]
fn an_attempt_through_another_socket_is_told_that_nobody_listens() {
    run(async {
        let ends = Ends::new(FIRST);
        for local in [ends.socket(SECOND), ends.socket(Ipv4Addr::new(127, 0, 0, 3)), Local::Any] {
            let nobody = UdpSocket::bind((FIRST, 0)).unwrap().local_addr().unwrap();
            let config = ends.identity.client_config(multipath(), ALPN);
            let dialled = ends.client.connect_from(config, local, nobody, "localhost").unwrap();
            let end = within(Duration::from_secs(2), dialled).await;
            assert_eq!(end.unwrap_err(), ConnectionError::Refused, "{local:?}");
        }
    });
}

/// Sends so many bytes from one end to the other.
async fn transfer(from: &Connection, to: &Connection, bytes: usize) {
    let send = async {
        let mut stream = from.open_uni().await.unwrap();
        stream.write_all(&vec![7; bytes]).await.unwrap();
        stream.finish().unwrap();
    };
    let receive = async { to.accept_uni().await.unwrap().read_to_end(bytes).await.unwrap().len() };
    assert_eq!(tokio::join!(send, receive).1, bytes);
}

/// How much of a transfer goes over one path.
async fn carried(from: &Connection, to: &Connection, path: usize) -> u64 {
    let sent = || from.paths()[path].stats().unwrap().bytes_sent;
    let before = sent();
    transfer(from, to, 3_000_000).await;
    sent() - before
}

#[test]
fn a_second_address_of_a_socket_carries_data_in_both_directions() {
    run(async {
        let ends = Ends::new(Ipv4Addr::UNSPECIFIED);
        let (client, server) = ends.connect().await;
        let path = open(&client, Local::Ip(IpAddr::V4(SECOND)), ends.addr).await;
        path.validated().await.unwrap();
        assert_eq!(path.info().unwrap().addrs.local_ip, Some(SECOND.into()));
        assert_eq!((client.paths().len(), server.paths().len()), (2, 2));
        // Which of two equal paths carries how much is up to the machine: one has to stand aside.
        for (aside, used) in [(0, 1), (1, 0)] {
            client.paths()[used].set_status(PathUse::Available).unwrap();
            client.paths()[aside].set_status(PathUse::Backup).unwrap();
            assert!(carried(&client, &server, used).await > 2_000_000);
            assert!(carried(&server, &client, used).await > 2_000_000);
        }
        let remotes: Vec<IpAddr> =
            server.paths().iter().map(|path| path.info().unwrap().addrs.remote.ip()).collect();
        assert_eq!(remotes, [IpAddr::from(FIRST), SECOND.into()]);
    });
}

#[test]
fn a_second_socket_carries_data_and_can_be_closed_when_its_path_is_abandoned() {
    run(async {
        let ends = Ends::new(FIRST);
        let (client, server) = ends.connect().await;
        let local = ends.socket(SECOND);
        let path = open(&client, local, ends.addr).await;
        path.validated().await.unwrap();
        server.paths()[0].set_status(PathUse::Backup).unwrap();
        assert!(carried(&server, &client, 1).await > 2_000_000);
        let Local::Socket(id) = local else { unreachable!("it is a socket") };
        path.abandon().unwrap();
        assert!(ends.client.remove_socket(id) && !ends.client.remove_socket(id));
        transfer(&server, &client, 3_000_000).await;
        transfer(&client, &server, 3_000_000).await;
    });
}

#[test]
fn the_figures_of_an_endpoint_are_those_of_all_its_sockets_and_never_fall() {
    run(async {
        let ends = Ends::new(FIRST);
        let (client, server) = ends.connect().await;
        let local = ends.socket(SECOND);
        let path = open(&client, local, ends.addr).await;
        path.validated().await.unwrap();
        server.paths()[0].set_status(PathUse::Backup).unwrap();
        client.paths()[0].set_status(PathUse::Backup).unwrap();
        let first = ends.client.socket().stats();
        transfer(&server, &client, 3_000_000).await;
        let all = ends.client.stats().socket;
        assert!(ends.client.socket().stats().bytes_received < first.bytes_received + 1_000_000);
        assert!(all.bytes_received > 3_000_000, "{all:?}");

        let Local::Socket(id) = local else { unreachable!("it is a socket") };
        path.abandon().unwrap();
        assert!(ends.client.remove_socket(id));
        let removed = ends.client.stats().socket;
        ends.client.rebind(UdpSocket::bind((FIRST, 0)).unwrap()).unwrap();
        let rebound = ends.client.stats().socket;
        for (before, after) in [(all, removed), (removed, rebound)] {
            assert!(after.bytes_received >= before.bytes_received, "{after:?}");
            assert!(after.bytes_sent >= before.bytes_sent, "{after:?}");
        }
        transfer(&client, &server, 1_000_000).await;
        assert!(ends.client.stats().socket.bytes_sent > rebound.bytes_sent + 1_000_000);
    });
}

#[test]
fn a_path_is_told_set_aside_and_abandoned() {
    run(async {
        let ends = Ends::new(FIRST);
        let (client, server) = ends.connect().await;
        let path = open(&client, ends.socket(SECOND), ends.addr).await;
        let id = path.id();
        let is = |event: PathEvent, wanted: fn(PathEvent) -> bool| assert!(wanted(event), "{event:?}");
        is(server.path_event().await.unwrap(), |event| matches!(event, PathEvent::Opened { .. }));
        is(server.path_event().await.unwrap(), |event| matches!(event, PathEvent::Validated { .. }));
        path.validated().await.unwrap();
        path.set_status(PathUse::Backup).unwrap();
        is(server.path_event().await.unwrap(), |event| {
            matches!(event, PathEvent::Status { wanted: PathUse::Backup, .. })
        });
        path.abandon().unwrap();
        is(server.path_event().await.unwrap(), |event| {
            matches!(event, PathEvent::Abandoned { by_peer: true, .. })
        });
        assert_eq!((path.stats().is_none(), path.abandon()), (true, Err(PathError::Unknown)));
        assert_eq!(path.validated().await, Err(PathError::Unknown));
        assert!(client.paths().iter().all(|path| path.id() != id));
        assert_eq!(client.paths()[0].abandon(), Err(PathError::LastPath));
        client.close(VarInt::ZERO, b"");
        assert!(server.path_event().await.is_err());
    });
}

#[test]
fn the_path_that_works_is_not_abandoned_for_one_that_leads_nowhere() {
    run(async {
        let ends = Ends::new(FIRST);
        let (client, server) = ends.connect().await;
        // Whoever is bound there says nothing.
        let silent = UdpSocket::bind((SECOND, 0)).unwrap();
        let path = open(&client, Local::Any, silent.local_addr().unwrap()).await;
        assert_eq!(client.paths()[0].abandon(), Err(PathError::LastPath));
        transfer(&client, &server, 100_000).await;
        path.abandon().unwrap();
    });
}

#[test]
fn a_manager_opens_a_path_over_each_pair() {
    run(async {
        let ends = Ends::new(FIRST);
        let locals = [Local::Any, ends.socket(SECOND), ends.socket(Ipv4Addr::new(127, 0, 0, 3))];
        let pairs = locals.map(|local| (local, ends.addr));
        let config = ends.identity.client_config(multipath(), ALPN);
        let accept = async { ends.server.accept().await.unwrap().await.unwrap() };
        let connect = ends.client.connect_over(config, &pairs, "localhost");
        let (client, server) = tokio::join!(connect, accept);
        let client = client.unwrap();
        let are_open = |connection: &Connection| {
            let paths = connection.paths();
            paths.len() == 3 && paths.iter().all(|path| path.info().is_some_and(|info| info.validated))
        };
        within(Duration::from_secs(5), async {
            while !are_open(&client) || !are_open(&server) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        })
        .await;
        transfer(&server, &client, 3_000_000).await;
    });
}

#[test]
fn paths_keep_their_addresses_from_socket_to_socket() {
    run(async {
        let ends = Ends::new(Ipv4Addr::UNSPECIFIED);
        let locals = [Ipv4Addr::new(127, 0, 0, 2), Ipv4Addr::new(127, 0, 0, 3)].map(IpAddr::from);
        let pairs = locals.map(|ip| (Local::Ip(ip), ends.addr));
        let config = ends.identity.client_config(multipath(), ALPN);
        let accept = async { ends.server.accept().await.unwrap().await.unwrap() };
        let connect = ends.client.connect_over(config, &pairs, "localhost");
        let (client, server) = tokio::join!(connect, accept);
        let client = client.unwrap();
        let addresses = || {
            let infos = client.paths().into_iter().filter_map(|path| path.info());
            let mut ips: Vec<_> =
                infos.filter(|info| info.validated).map(|info| info.addrs.local_ip).collect();
            ips.sort();
            ips
        };
        for _ in 0..4 {
            within(Duration::from_secs(5), async {
                while addresses() != locals.map(Some) {
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
            })
            .await;
            transfer(&server, &client, 1_000_000).await;
            ends.client.rebind(UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).unwrap()).unwrap();
        }
    });
}

#[test]
fn the_handshake_takes_the_pair_that_answers() {
    run(async {
        let ends = Ends::new(FIRST);
        // Whoever is bound there says nothing.
        let silent = UdpSocket::bind((FIRST, 0)).unwrap();
        let local = ends.socket(SECOND);
        let pairs = [(Local::Any, silent.local_addr().unwrap()), (local, ends.addr)];
        let config = ends.identity.client_config(multipath(), ALPN);
        let accept = async { ends.server.accept().await.unwrap().await.unwrap() };
        let connect = ends.client.connect_over(config, &pairs, "localhost");
        let (client, server) = tokio::join!(connect, accept);
        let client = client.unwrap();
        assert_eq!(server.remote_address().ip(), IpAddr::from(SECOND));
        transfer(&client, &server, 100_000).await;
    });
}

#[test]
fn a_server_answers_on_each_of_its_sockets() {
    run(async {
        let ends = Ends::new(Ipv4Addr::UNSPECIFIED);
        let socket = UdpSocket::bind((SECOND, 0)).unwrap();
        let addr = socket.local_addr().unwrap();
        ends.server.add_socket(socket).unwrap();
        let accept = async { ends.server.accept().await.unwrap().await.unwrap() };
        let connect = async { ends.client.connect(addr, "localhost").unwrap().await.unwrap() };
        let (client, server) = tokio::join!(connect, accept);
        transfer(&client, &server, 1_000_000).await;
        // Another path leads to the other socket.
        open(&client, Local::Any, ends.addr).await.validated().await.unwrap();
        transfer(&server, &client, 3_000_000).await;
    });
}

//! Both sides let a connection without traffic go, silently and in time.

use std::thread::sleep;
use std::time::{Duration, Instant};

use super::PATIENCE;
use super::scene::Scene;
use crate::Result;
use crate::interop::peers::Peer;

/// The idle timeout of both sides.
pub(super) const TIMEOUT: Duration = Duration::from_secs(2);
/// The client would keep the connection this long if it lasted.
pub(super) const HOLD: Duration = Duration::from_secs(20);
/// The connection must last about as long as the timeout: acknowledgements of the last data may restart it only on one
/// side.
const QUIET_MIN: Duration = Duration::from_millis(1500);
const QUIET_MAX: Duration = Duration::from_secs(6);
/// How long to listen for words after the end.
const AFTERMATH: Duration = Duration::from_millis(500);

pub(super) fn run(scene: Scene<'_>) -> Result<()> {
    let finished = scene.start_client("client", &scene.relay)?.wait(PATIENCE)?.ok_or("the client hangs")?;
    let end = Instant::now();
    if !finished.status.success() {
        return Err(format!("the client failed: {}", finished.complaint()).into());
    }
    scene.compare_files()?;
    check_silence(&scene, end)?;
    check_server_noticed(&scene)?;
    serve_another(&scene)?;
    scene.stop_server()?;
    Ok(())
}

/// RFC 9000 §10.1: the connection is closed silently, so the last datagram is as old as the timeout.
fn check_silence(scene: &Scene<'_>, end: Instant) -> Result<()> {
    sleep(AFTERMATH);
    let last = scene.relay.traffic().last().ok_or("nothing was ever sent")?;
    let Some(quiet) = end.checked_duration_since(last) else {
        return Err("something was sent after the client's end".into());
    };
    if !(QUIET_MIN..=QUIET_MAX).contains(&quiet) {
        return Err(format!("the client ended after {} ms without traffic", quiet.as_millis()).into());
    }
    Ok(())
}

/// All servers print when and why a connection ended; Fulmar's has words of its own for the reason.
fn check_server_noticed(scene: &Scene<'_>) -> Result<()> {
    let words = if scene.pair().server == Peer::Fulmar {
        "connection ended"
    } else {
        "connection ended: idle timeout"
    };
    let deadline = Instant::now() + QUIET_MAX;
    while !scene.server.says(words)? {
        if Instant::now() > deadline {
            return Err("the server did not let the connection go".into());
        }
        sleep(Duration::from_millis(10));
    }
    Ok(())
}

/// The server is as good as new.
fn serve_another(scene: &Scene<'_>) -> Result<()> {
    let relay = scene.new_relay()?;
    let mut client = scene.start_client_holding("client-2", &relay, Duration::ZERO)?;
    let finished = client.wait(PATIENCE)?.ok_or("the second client hangs")?;
    if !finished.status.success() {
        return Err(format!("the second client failed: {}", finished.complaint()).into());
    }
    Ok(())
}

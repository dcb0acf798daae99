//! A client learns from a stateless reset that its server was restarted, RFC 9000 §10.3.

use std::thread::sleep;
use std::time::{Duration, Instant};

use super::scene::Scene;
use super::{IDLE_LONG, PATIENCE};
use crate::Result;

/// How long the client may take to notice; far below its idle timeout.
const NOTICE_MAX: Duration = Duration::from_secs(5);
const _: () = assert!(NOTICE_MAX.as_secs() * 4 < IDLE_LONG.as_secs());
/// Late acknowledgements settle within this time.
const SETTLE: Duration = Duration::from_millis(500);
/// How often the relay repeats a datagram of the client. A client that holds a connection without traffic would
/// otherwise have no reason to send anything that a server could answer with a reset.
const REPEAT_INTERVAL: Duration = Duration::from_millis(200);

pub(super) fn run(mut scene: Scene<'_>) -> Result<()> {
    let mut client = scene.start_client("client", &scene.relay)?;
    let deadline = Instant::now() + PATIENCE;
    while let Err(error) = scene.compare_files() {
        if let Some(finished) = client.wait(Duration::from_millis(10))? {
            return Err(format!("the client failed: {}", finished.complaint()).into());
        }
        if Instant::now() > deadline {
            return Err(error);
        }
    }
    sleep(SETTLE);
    scene.replace_server()?;

    let restarted = Instant::now();
    let finished = loop {
        scene.relay.repeat_from_client();
        if let Some(finished) = client.wait(REPEAT_INTERVAL)? {
            break finished;
        }
        if restarted.elapsed() > NOTICE_MAX {
            return Err(format!("the client did not notice within {} s", NOTICE_MAX.as_secs()).into());
        }
    };
    if finished.status.success() {
        return Err("the client ended as if nothing had happened".into());
    }
    if !finished.says("stateless reset") {
        return Err(format!("the client speaks of no stateless reset: {}", finished.complaint()).into());
    }
    scene.stop_server()?;
    Ok(())
}

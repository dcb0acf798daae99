//! Unreliable datagrams, as many as the stack can.

use std::time::Duration;

use tokio::time::timeout;

use super::{Figures, Meter};
use crate::digest::Digest;
use crate::failure::{Failure, Result};
use crate::options::Load;
use crate::protocol::{DIGEST_LEN, Question, Reader};
use crate::stack::{Connection, Dialer, Sender};

/// After this long without one, no more come.
const SILENCE: Duration = Duration::from_millis(500);

pub(super) async fn run(dialer: impl Dialer, load: &Load, server: u32) -> Result<Figures> {
    let connection = dialer.dial().await?;
    let (mut sender, receiver) = connection.open().await?;
    let question = Question::Datagrams { milliseconds: load.milliseconds, size: load.size };
    let meter = Meter::start(server);
    sender.write(question.encode()).await?;
    sender.finish().await?;
    let mut received = 0_u64;
    while let Ok(datagram) = timeout(SILENCE, connection.receive_datagram()).await {
        check(&datagram?)?;
        received += 1;
    }
    let mut figures = meter.stop(received);
    if received == 0 {
        return Err(Failure::Unsupported("no datagram arrived"));
    }
    figures.seconds = (figures.seconds - SILENCE.as_secs_f64()).max(f64::MIN_POSITIVE);
    figures.lost = Some(Reader::new(receiver).number().await?.saturating_sub(received));
    connection.close();
    Ok(figures)
}

fn check(datagram: &[u8]) -> Result<()> {
    let (content, sent) = datagram.split_last_chunk::<DIGEST_LEN>().ok_or(Failure::Damaged("a datagram"))?;
    let mut digest = Digest::default();
    digest.update(content);
    if digest.value() == u64::from_be_bytes(*sent) { Ok(()) } else { Err(Failure::Damaged("a datagram")) }
}

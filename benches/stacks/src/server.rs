//! The end that answers: a task per connection and one per stream, for every stack.

use std::time::Duration;

use bytes::{BufMut, BytesMut};
use tokio::time::{Instant, sleep_until};

use crate::digest::Digest;
use crate::failure::Result;
use crate::options::Transport;
use crate::process::now_ns;
use crate::protocol::{Content, Question, Reader, number};
use crate::stack::{Connection, Listener, Sender, Stack};

/// How often a stream has a frame.
pub(crate) const FRAME_INTERVAL: Duration = Duration::from_millis(20);
/// A frame begins with the time at which it was due.
pub(crate) const FRAME_HEADER_LEN: u64 = 8;

/// Serves until the process is ended.
pub(crate) async fn serve<S: Stack>(transport: Transport) -> Result<()> {
    let mut listener = S::listen(&transport)?;
    println!("listening on {}", listener.address()?);
    let content = Content::default();
    while let Some(pending) = listener.accept().await {
        let content = content.clone();
        tokio::spawn(async move {
            match S::Listener::establish(pending).await {
                Ok(connection) => serve_connection(connection, content).await,
                Err(error) => eprintln!("error: {error}"),
            }
        });
    }
    Ok(())
}

async fn serve_connection<C: Connection>(connection: C, content: Content) {
    while let Some((sender, receiver)) = connection.accept().await {
        let (connection, content) = (connection.clone(), content.clone());
        tokio::spawn(async move {
            // Clients that are done leave while answers are under way: what they miss, they report.
            let _ = serve_stream(connection, sender, Reader::new(receiver), content).await;
        });
    }
}

async fn serve_stream<C: Connection>(
    connection: C,
    mut sender: C::Sender,
    mut reader: Reader<C::Receiver>,
    content: Content,
) -> Result<()> {
    while let Some(question) = reader.question().await? {
        match question {
            Question::Download(size) => content.write_with_digest(&mut sender, size).await?,
            Question::Upload(size) => {
                let mut digest = Digest::default();
                reader.digested(size, &mut digest).await?;
                sender.write(number(digest.value())).await?;
            }
            Question::Frames { count, size } => send_frames(&mut sender, &content, count, size).await?,
            Question::Datagrams { milliseconds, size } => {
                let sent =
                    send_datagrams(&connection, &content, Duration::from_millis(milliseconds), size).await?;
                sender.write(number(sent)).await?;
            }
        }
    }
    sender.finish().await
}

/// Each frame is due a fixed time after the one before, however late that was, so that a delay is seen in all it delays.
async fn send_frames(sender: &mut impl Sender, content: &Content, count: u64, size: u64) -> Result<()> {
    let rest = content.prefix(size.saturating_sub(FRAME_HEADER_LEN));
    let mut digest = Digest::default();
    let (mut due, mut due_ns) = (Instant::now(), now_ns());
    for _ in 0..count {
        due += FRAME_INTERVAL;
        due_ns += FRAME_INTERVAL.as_nanos() as u64;
        sleep_until(due).await;
        let mut frame = BytesMut::with_capacity(size as usize);
        frame.put_u64(due_ns);
        frame.put_slice(&rest);
        digest.update(&frame);
        sender.write(frame.freeze()).await?;
    }
    sender.write(number(digest.value())).await
}

async fn send_datagrams(
    connection: &impl Connection,
    content: &Content,
    duration: Duration,
    size: u64,
) -> Result<u64> {
    let end = Instant::now() + duration;
    let rest = content.prefix(size.saturating_sub(16));
    let mut sent = 0;
    while Instant::now() < end {
        let mut datagram = BytesMut::with_capacity(size as usize);
        datagram.put_u64(sent);
        datagram.put_slice(&rest);
        let mut digest = Digest::default();
        digest.update(&datagram);
        datagram.put_u64(digest.value());
        connection.send_datagram(datagram.freeze()).await?;
        sent += 1;
    }
    Ok(sent)
}

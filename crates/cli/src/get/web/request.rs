//! What is asked of a server.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use std::thread;

use bytes::Bytes;
use http::header::{self, HeaderName, HeaderValue};
use http::uri::Authority;
use http::{HeaderMap, Method, Request};
use http_body::{Frame, SizeHint};
use tokio::sync::mpsc;

use super::{credentials, exit, unpack};
use crate::failure::Failure;
use crate::get::{HttpArgs, Url};

/// How much of a file is read at a time, in bytes, and how many of such pieces wait to be sent.
const PIECE_BYTES: usize = 64 << 10;
const PIECES_MAX: usize = 4;

/// What the command line asks for.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) method: Method,
    fields: Vec<(HeaderName, Option<HeaderValue>)>,
    content: Content,
    /// Whether content is asked for that is compressed.
    is_compressed: bool,
    /// Whether a request with the content was made.
    was_sent: AtomicBool,
}

/// What is sent with a request.
#[derive(Debug)]
enum Content {
    Nothing,
    Form(Bytes),
    File(PathBuf),
    /// A pipe or a device, or standard input: what comes from there comes once.
    Pipe(Option<PathBuf>),
}

impl Asked {
    pub(super) fn from_args(args: &HttpArgs) -> Result<Self, Failure> {
        let content = content(args)?;
        let method = match (&args.request, &content) {
            (Some(method), _) => {
                method.parse().map_err(|_| Failure::Usage(format!("`{method}` is no method of HTTP")))?
            }
            (None, _) if args.head => Method::HEAD,
            (None, Content::Nothing) => Method::GET,
            (None, Content::Form(_)) => Method::POST,
            (None, Content::File(_) | Content::Pipe(_)) => Method::PUT,
        };
        let mut fields =
            args.headers.iter().map(|field| parse_field(field)).collect::<Result<Vec<_>, _>>()?;
        fields.extend(fields_of_options(args)?.into_iter().map(|(name, value)| (name, Some(value))));
        let hosts: Vec<_> = fields.iter().filter(|(name, _)| *name == header::HOST).collect();
        if hosts.len() > 1 || !hosts.iter().all(|(_, host)| host.as_ref().is_none_or(is_authority)) {
            return Err(Failure::Usage(
                "a request names one server: write `Host: NAME[:PORT]` once".to_owned(),
            ));
        }
        Ok(Self { method, fields, content, is_compressed: args.compressed, was_sent: AtomicBool::new(false) })
    }

    /// Whether it can be asked for again.
    pub(super) fn is_repeatable(&self) -> bool {
        !matches!(self.content, Content::Pipe(_))
    }

    /// Whether the user has named a value for this field.
    pub(super) fn has_field(&self, name: &HeaderName) -> bool {
        self.fields.iter().any(|(field, value)| field == name && value.is_some())
    }

    /// A request; `has_content` is false after a redirection that has made a GET of it, and `is_home` when it goes to the server that
    /// the user has named.
    ///
    /// # Errors
    /// What is to be sent cannot be read, or comes once and was sent already.
    pub(super) fn request(
        &self,
        method: &Method,
        url: &Url,
        has_content: bool,
        is_home: bool,
    ) -> Result<Request<Upload>, Failure> {
        if has_content && self.was_sent.swap(true, Ordering::Relaxed) && !self.is_repeatable() {
            let why = "what was piped in has been sent, and cannot be sent again".to_owned();
            return Err(Failure::Http { what: url.to_string(), why, exit: exit::SENT_ONCE });
        }
        let mut request = Request::new(if has_content { self.open()? } else { Upload::Full(Bytes::new()) });
        *request.method_mut() = method.clone();
        *request.uri_mut() =
            url.to_string().parse().map_err(|error| Failure::Usage(format!("{url} is no URI: {error}")))?;
        let len = request.body().len();
        let headers = request.headers_mut();
        let agent = concat!("fulmar/", env!("CARGO_PKG_VERSION"));
        headers.insert(header::USER_AGENT, HeaderValue::from_static(agent));
        headers.insert(header::ACCEPT, HeaderValue::from_static("*/*"));
        if self.is_compressed {
            headers.insert(header::ACCEPT_ENCODING, unpack::ACCEPTED);
        }
        if has_content && matches!(self.content, Content::Form(_)) {
            let form = HeaderValue::from_static("application/x-www-form-urlencoded");
            headers.insert(header::CONTENT_TYPE, form);
        }
        if let Some(len) = len.filter(|_| has_content && !matches!(self.content, Content::Nothing)) {
            headers.insert(header::CONTENT_LENGTH, len.into());
        }
        self.add_fields(headers, is_home);
        Ok(request)
    }

    fn add_fields(&self, headers: &mut HeaderMap, is_home: bool) {
        for (name, _) in &self.fields {
            headers.remove(name);
        }
        for (name, value) in &self.fields {
            // Nobody else shall learn a secret that was meant for one server, or be asked for what is another's.
            let is_for_home = [header::AUTHORIZATION, header::COOKIE, header::HOST].contains(name);
            if let Some(value) = value
                && (is_home || !is_for_home)
            {
                headers.append(name, value.clone());
            }
        }
    }

    fn open(&self) -> Result<Upload, Failure> {
        Ok(match &self.content {
            Content::Nothing => Upload::Full(Bytes::new()),
            Content::Form(bytes) => Upload::Full(bytes.clone()),
            Content::Pipe(None) => pieces(|| Ok(io::stdin()), None)?,
            Content::Pipe(Some(path)) => {
                // To open a pipe may take until someone writes to it.
                let path = path.clone();
                pieces(move || File::open(path), None)?
            }
            Content::File(path) => {
                let unreadable = |error| Failure::Read { what: path.display().to_string(), error };
                let file = File::open(path).map_err(unreadable)?;
                let len = file.metadata().map_err(unreadable)?.len();
                // What is appended meanwhile is not part of what was announced.
                pieces(move || Ok(file.take(len)), Some(len))?
            }
        })
    }
}

/// The fields that have options of their own.
fn fields_of_options(args: &HttpArgs) -> Result<Vec<(HeaderName, HeaderValue)>, Failure> {
    let mut fields = Vec::new();
    if let Some(range) = &args.range {
        let is_range = range.contains('-') && range.bytes().all(|byte| b"0123456789-,".contains(&byte));
        let value = HeaderValue::from_str(&format!("bytes={range}")).ok().filter(|_| is_range);
        let value = value
            .ok_or_else(|| Failure::Usage(format!("`{range}` is no range: write 0-99, 100- or -100")))?;
        fields.push((header::RANGE, value));
    }
    if let Some(agent) = &args.user_agent {
        let value = HeaderValue::from_str(agent);
        let unfit = |_| Failure::Usage(format!("`{agent}` cannot be the name of a program"));
        fields.push((header::USER_AGENT, value.map_err(unfit)?));
    }
    if let Some(user) = &args.user {
        fields.push((header::AUTHORIZATION, credentials::basic(user).map_err(Failure::Usage)?));
    }
    Ok(fields)
}

fn content(args: &HttpArgs) -> Result<Content, Failure> {
    if let Some(file) = &args.upload_file {
        if file.is_dir() {
            return Err(Failure::Usage(format!("-T sends a file, and {} is a directory", file.display())));
        }
        if file.as_os_str() == "-" {
            return Ok(Content::Pipe(None));
        }
        // Of what is not there is told when it is opened.
        let is_pipe = fs::metadata(file).is_ok_and(|found| !found.is_file());
        return Ok(if is_pipe { Content::Pipe(Some(file.clone())) } else { Content::File(file.clone()) });
    }
    if let Some(data) = &args.data_binary {
        return Ok(Content::Form(read_data(data)?.into()));
    }
    if args.data.is_empty() {
        return Ok(Content::Nothing);
    }
    let mut parts = Vec::new();
    for data in &args.data {
        let mut part = read_data(data)?;
        if data.starts_with('@') {
            part.retain(|byte| !matches!(byte, b'\r' | b'\n'));
        }
        parts.push(part);
    }
    Ok(Content::Form(parts.join(&b'&').into()))
}

/// What `--data` names.
fn read_data(data: &str) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    match data.strip_prefix('@') {
        None => bytes.extend(data.as_bytes()),
        Some("-") => {
            let read = io::stdin().read_to_end(&mut bytes);
            read.map_err(|error| Failure::Read { what: "standard input".to_owned(), error })?;
        }
        Some(file) => {
            let read = fs::read(Path::new(file));
            bytes = read.map_err(|error| Failure::Read { what: file.to_owned(), error })?;
        }
    }
    Ok(bytes)
}

/// Parses `Name: value`; without a value the field is not sent.
fn parse_field(field: &str) -> Result<(HeaderName, Option<HeaderValue>), Failure> {
    let malformed = || Failure::Usage(format!("`{field}` is no field of a request: write `Name: value`"));
    let (name, value) = field.split_once(':').ok_or_else(malformed)?;
    let name: HeaderName = name.trim().parse().map_err(|_| malformed())?;
    let value = value.trim();
    let parsed = HeaderValue::from_str(value).map_err(|_| malformed())?;
    Ok((name, (!value.is_empty()).then_some(parsed)))
}

/// Whether a value names a server, as Host does.
fn is_authority(value: &HeaderValue) -> bool {
    let authority = Authority::try_from(value.as_bytes());
    authority.is_ok_and(|authority| !authority.as_str().contains('@'))
}

/// The body of a request.
#[derive(Debug)]
pub(super) enum Upload {
    Full(Bytes),
    Pieces(Pieces),
}

/// Pieces that a thread reads.
#[derive(Debug)]
pub(super) struct Pieces {
    receiver: mpsc::Receiver<io::Result<Bytes>>,
    /// How many bytes they are together, if that is known.
    len: Option<u64>,
    trouble: Trouble,
}

/// Why what is to be sent cannot be read to its end, if it cannot: of that the versions of HTTP tell in words of their own, or not at all.
#[derive(Debug, Clone, Default)]
pub(super) struct Trouble(Arc<OnceLock<String>>);

impl Trouble {
    pub(super) fn why(&self) -> Option<&str> {
        self.0.get().map(String::as_str)
    }
}

/// Reads in a thread, as fast as the pieces are taken. Nobody waits for the thread: a pipe or a terminal may never give anything.
fn pieces<R: Read>(
    open: impl FnOnce() -> io::Result<R> + Send + 'static,
    len: Option<u64>,
) -> Result<Upload, Failure> {
    let (sender, receiver) = mpsc::channel(PIECES_MAX);
    let trouble = Trouble::default();
    let told = trouble.clone();
    let read = move || {
        if let Err(error) = open().and_then(|source| send_pieces(source, len, &sender)) {
            let _ = told.0.set(error.to_string());
            let _ = sender.blocking_send(Err(error));
        }
    };
    thread::Builder::new().spawn(read).map_err(Failure::io("cannot start a thread"))?;
    Ok(Upload::Pieces(Pieces { receiver, len, trouble }))
}

/// Reads to the end, or until nobody takes any more.
fn send_pieces(
    mut source: impl Read,
    len: Option<u64>,
    sender: &mpsc::Sender<io::Result<Bytes>>,
) -> io::Result<()> {
    let mut sent = 0;
    loop {
        let mut piece = vec![0; PIECE_BYTES];
        let count = source.read(&mut piece)?;
        if count == 0 {
            break;
        }
        piece.truncate(count);
        sent += count as u64;
        if sender.blocking_send(Ok(piece.into())).is_err() {
            return Ok(());
        }
    }
    match len.filter(|len| sent < *len) {
        Some(len) => {
            let why =
                format!("the file has become shorter while it was sent: {sent} of {len} bytes are there");
            Err(io::Error::new(ErrorKind::UnexpectedEof, why))
        }
        None => Ok(()),
    }
}

impl Upload {
    fn len(&self) -> Option<u64> {
        match self {
            Self::Full(bytes) => Some(bytes.len() as u64),
            Self::Pieces(pieces) => pieces.len,
        }
    }

    /// Where it is told later why it cannot be read.
    pub(super) fn trouble(&self) -> Trouble {
        match self {
            Self::Full(_) => Trouble::default(),
            Self::Pieces(pieces) => pieces.trouble.clone(),
        }
    }
}

impl http_body::Body for Upload {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        match &mut *self {
            Self::Full(bytes) if bytes.is_empty() => Poll::Ready(None),
            Self::Full(bytes) => Poll::Ready(Some(Ok(Frame::data(std::mem::take(bytes))))),
            Self::Pieces(pieces) => {
                pieces.receiver.poll_recv(cx).map(|piece| piece.map(|piece| piece.map(Frame::data)))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Self::Full(bytes) if bytes.is_empty())
    }

    fn size_hint(&self) -> SizeHint {
        self.len().map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}

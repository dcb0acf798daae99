//! One URL: requests until it is there, and what comes of them.

mod copy;
mod elsewhere;
mod setback;

use std::time::{Duration, Instant};

use fulmar_h3::{Body, Client, ConnectionInfo};
use http::header::{self, HeaderValue};
use http::{HeaderMap, Method, Response, StatusCode, Version};
use tokio::time::sleep;

use self::elsewhere::Elsewhere;
use self::setback::{Setback, refused};
use super::clients::judge;
use super::limit::Limit;
use super::narration::{head, printable, told};
use super::part_of::{Part, content_length, is_same_version, may_be_same_version, validator};
use super::sink::Sink;
use super::unpack::Unpacker;
use super::{Item, Job, exit, other, redirect};
use crate::duration::Span;
use crate::failure::Failure;
use crate::get::Url;
use crate::size::Size;
use crate::tls::Refusal;

/// How often a server may send on.
const REDIRECTS_MAX: u32 = 20;
/// The first pause before another attempt, and the longest, also if the server asks for a longer one.
const PAUSE_FIRST: Duration = Duration::from_secs(1);
const PAUSE_MAX: Duration = Duration::from_secs(600);

/// A URL that is fetched.
pub(super) struct Exchange<'a> {
    job: &'a Job,
    item: &'a Item,
    limit: Limit,
    sink: Option<Sink>,
    /// How much was there of the file before the first attempt, and still is.
    held_at_first: u64,
    /// Of what the sink has a part.
    validator: Option<String>,
    /// That of the last response, if it is to be printed.
    head: Option<String>,
}

/// What came of it.
#[derive(Debug)]
pub(super) struct Done {
    pub(super) url: Url,
    pub(super) status: StatusCode,
    pub(super) version: Version,
    pub(super) info: ConnectionInfo,
    pub(super) first_byte: Duration,
    /// What came, in all attempts, of what is there now.
    pub(super) bytes: u64,
    /// How much was there before the first one.
    pub(super) resumed_at: u64,
}

/// What one response has brought.
enum Taken {
    /// All of it, or the rest.
    All(Done),
    /// A part behind which there is more.
    Part(Done),
    /// Nothing that can be used: why, and of what URL. All of it has to be asked for.
    Nothing(Url, &'static str),
    /// A beginning. The rest comes in another response, from the same URL.
    Beginning(Url, Box<Elsewhere>),
}

impl<'a> Exchange<'a> {
    pub(super) fn new(job: &'a Job, item: &'a Item, limit: Limit) -> Self {
        Self { job, item, limit, sink: None, held_at_first: 0, validator: None, head: None }
    }

    /// Fetches it, and tries again as often as the user wants. Nothing half-written gets the name of the file.
    pub(super) async fn run(&mut self) -> Result<Done, Failure> {
        let result = self.try_until_it_is_there().await;
        if let Some(head) = self.head.take() {
            self.job.output.print(&(), || head);
        }
        result
    }

    async fn try_until_it_is_there(&mut self) -> Result<Done, Failure> {
        let mut retries = 0;
        loop {
            self.head = None;
            let Setback { failure, again } = match self.attempt().await {
                Ok(done) => return Ok(done),
                Err(setback) => setback,
            };
            let again =
                again.filter(|_| retries < self.job.args.http.retry && self.job.asked.is_repeatable());
            let Some(asked_for) = again else { return Err(failure) };
            let pause = asked_for.max(PAUSE_FIRST.saturating_mul(1 << retries.min(16))).min(PAUSE_MAX);
            retries += 1;
            self.job.output.note(&format!("{failure}; attempt {} follows in {}", retries + 1, Span(pause)));
            self.limit.within(sleep(pause)).await?;
        }
    }

    async fn attempt(&mut self) -> Result<Done, Setback> {
        let job = self.job;
        // The file comes first: where it cannot be written, there is no use in asking for it.
        if self.sink.is_none() && !job.args.http.head {
            let resume = job.args.http.continue_at.is_some();
            let opened = self.limit.within(Sink::open(job.place.file(self.item), resume)).await?;
            let (sink, validator) = opened?;
            self.held_at_first = sink.len();
            (self.sink, self.validator) = (Some(sink), validator);
        }
        let start = Instant::now();
        let (mut first, mut is_anew) = (None, false);
        loop {
            match self.ask_and_take(start).await? {
                Taken::All(done) => return Ok(Done { first_byte: first.unwrap_or(done.first_byte), ..done }),
                Taken::Part(done) => first = first.or(Some(done.first_byte)),
                Taken::Beginning(..) => {}
                Taken::Nothing(url, why) if is_anew => {
                    return Err(Failure::Http {
                        what: url.to_string(),
                        why: why.to_owned(),
                        exit: exit::CUT,
                    }
                    .into());
                }
                Taken::Nothing(url, why) => {
                    job.output.narrate(|| format!("{url}: {why}; all of it is asked for"));
                    (first, is_anew) = (None, true);
                }
            }
        }
    }

    /// Asks for what is missing, goes where it has moved to, and takes what comes.
    async fn ask_and_take(&mut self, start: Instant) -> Result<Taken, Setback> {
        let job = self.job;
        let (mut url, mut method, mut has_content) = (self.item.url.clone(), job.asked.method.clone(), true);
        for _ in 0..=REDIRECTS_MAX {
            let (response, refusal) = self.ask(&url, &method, has_content).await?;
            let next = redirect::next_method(response.status(), &method);
            let (Some(next), Some(target)) = (next, redirect::target(&url, response.headers())) else {
                let first_byte = start.elapsed();
                let mut taken = self.take(url, &method, response, first_byte, &refusal).await?;
                while let Taken::Beginning(url, rest) = taken {
                    let (response, refusal) = *rest;
                    taken = self.take(url, &method, response, first_byte, &refusal).await?;
                }
                return Ok(taken);
            };
            if !job.args.http.location {
                if job.args.http.head {
                    return self.take(url, &method, response, start.elapsed(), &refusal).await;
                }
                let why = format!(
                    "the server answered {}: it has moved to {} (-L goes there)",
                    response.status(),
                    printable(response.headers().get(header::LOCATION)),
                );
                return Err(Failure::Http { what: url.to_string(), why, exit: exit::STATUS }.into());
            }
            let target = target.map_err(|why| {
                other(url.to_string(), format!("it has moved to where nothing can be got: {why}"))
            })?;
            has_content &= next == method;
            (url, method) = (target, next);
        }
        let why = format!("the server sent on more than {REDIRECTS_MAX} times");
        Err(Failure::Http { what: self.item.url.to_string(), why, exit: exit::REDIRECTS }.into())
    }

    async fn ask(
        &self,
        url: &Url,
        method: &Method,
        has_content: bool,
    ) -> Result<(Response<Body>, Refusal), Failure> {
        let found = self.ask_of(self.job.clients.of(&url.authority)?, url, method, has_content).await?;
        if self.job.args.http.include && !self.job.args.http.head {
            self.show_head(&found.0);
        }
        Ok(found)
    }

    /// Prints the head of a response, unless a part of the body is there already: that is not torn apart.
    fn show_head(&self, response: &Response<Body>) {
        let is_amid_body = self.sink.as_ref().is_some_and(|sink| sink.is_stdout() && sink.len() > 0);
        if !is_amid_body {
            let head = head(response.version(), response.status(), response.headers());
            self.job.output.print(&(), || head);
        }
    }

    async fn ask_of(
        &self,
        (client, refusal): (Client, Refusal),
        url: &Url,
        method: &Method,
        has_content: bool,
    ) -> Result<(Response<Body>, Refusal), Failure> {
        let job = self.job;
        let is_home = url.authority == self.item.url.authority;
        let mut request = job.asked.request(method, url, has_content, is_home)?;
        let held = self.sink.as_ref().map_or(0, Sink::len);
        if let Some(validator) = self.validator.as_deref().and_then(|text| HeaderValue::from_str(text).ok())
            && held > 0
            && !self.is_of_a_range()
            && *method == Method::GET
        {
            let range = HeaderValue::from_str(&format!("bytes={held}-"));
            request.headers_mut().extend(range.ok().map(|range| (header::RANGE, range)));
            request.headers_mut().insert(header::IF_RANGE, validator);
        }
        job.output.narrate(|| told(&format!("> {method} {url}"), request.headers(), '>'));
        let trouble = request.body().trouble();
        let response = self.limit.within(client.request(request)).await?;
        let response = response.map_err(|error| match (trouble.why(), judge(&error, &refusal, url)) {
            (Some(why), _) => {
                let why = format!("what was to be sent failed: {why}");
                Failure::Http { what: url.to_string(), why, exit: exit::NOT_READ }
            }
            (None, Failure::Http { what, why, exit }) if matches!(error, fulmar_h3::Error::Reset(_)) => {
                Failure::Http { what, why: why + " (--retry tries again)", exit }
            }
            (None, failure) => failure,
        })?;
        job.output.narrate(|| job.clients.about(&url.authority, &response, &refusal));
        let status = format!("< {:?} {}", response.version(), response.status());
        job.output.narrate(|| told(&status, response.headers(), '<'));
        Ok((response, refusal))
    }

    /// Takes a response to its end.
    async fn take(
        &mut self,
        url: Url,
        method: &Method,
        response: Response<Body>,
        first_byte: Duration,
        refusal: &Refusal,
    ) -> Result<Taken, Setback> {
        let (parts, body) = response.into_parts();
        let Some(&info) = parts.extensions.get::<ConnectionInfo>() else {
            return Err(other(url.to_string(), "nothing is known of the connection".to_owned()).into());
        };
        let mut done = Done {
            url,
            status: parts.status,
            version: parts.version,
            info,
            first_byte,
            bytes: 0,
            resumed_at: 0,
        };
        if self.job.args.http.head {
            self.head = Some(head(parts.version, parts.status, &parts.headers));
            if parts.status.is_client_error() || parts.status.is_server_error() {
                return Err(refused(&done.url, parts.status, &parts.headers));
            }
            return Ok(Taken::All(done));
        }
        let held = self.sink.as_ref().map_or(0, Sink::len);
        if parts.status == StatusCode::RANGE_NOT_SATISFIABLE && held > 0 && !self.is_of_a_range() {
            return self.on_no_rest(done, held, &parts.headers).await;
        }
        if parts.status == StatusCode::NOT_MODIFIED {
            // The user has asked under a condition: what is here already is what the server has, and stays.
            self.sink = None;
            return Ok(Taken::All(done));
        }
        if parts.status.is_client_error() || parts.status.is_server_error() {
            return Err(refused(&done.url, parts.status, &parts.headers));
        }
        // Of a part that the user has asked for the server knows best what it is.
        let is_part = parts.status == StatusCode::PARTIAL_CONTENT && !self.is_of_a_range();
        let part = Part::of(&parts.headers).filter(|_| is_part);
        if is_part && !self.fits(part, held, &parts.headers) {
            self.begin_anew(None)?;
            return Ok(Taken::Nothing(done.url, "the server sent another part than was asked for"));
        }
        if held > 0 && is_part {
            done.resumed_at = held;
        } else {
            let is_wanted = self.job.args.http.compressed;
            let unpacker = is_wanted.then(|| Unpacker::of(&done.url, &parts.headers)).transpose()?.flatten();
            // What was unpacked is no part of what the server has.
            let may_go_on = *method == Method::GET && !self.is_of_a_range() && unpacker.is_none();
            self.begin_anew(validator(&parts.headers).filter(|_| may_go_on))?;
            if let Some(sink) = &mut self.sink {
                sink.unpack_by(unpacker);
            }
        }
        // These end with their head, whatever it says (RFC 9112 §6.3).
        let is_head_alone = *method == Method::HEAD || parts.status == StatusCode::NO_CONTENT;
        let announced = part.map(Part::len).or_else(|| content_length(&parts.headers));
        let announced = announced.filter(|_| !is_head_alone);
        if let Some(rest) = self.receive(&mut done, body, announced, refusal).await? {
            return Ok(Taken::Beginning(done.url, Box::new(rest)));
        }
        if part.is_some_and(|part| !part.is_last()) {
            return Ok(Taken::Part(done));
        }
        self.commit(done).await
    }

    /// Whether the user asks for a range. What comes of it is nothing that goes on somewhere.
    fn is_of_a_range(&self) -> bool {
        self.job.asked.has_field(&header::RANGE)
    }

    /// Whether a part goes on where what is here ends, and is of the same version.
    fn fits(&self, part: Option<Part>, held: u64, headers: &HeaderMap) -> bool {
        let validator = self.validator.as_deref();
        part.is_some_and(|part| part.first == held)
            && (held == 0 || validator.is_some_and(|validator| is_same_version(validator, headers)))
    }

    /// Forgets what is here. What comes next is of the version that a validator names.
    fn begin_anew(&mut self, validator: Option<String>) -> Result<(), Failure> {
        self.sink.as_mut().ok_or(Failure::Thread("disk"))?.begin_anew(validator.as_deref())?;
        (self.validator, self.held_at_first) = (validator, 0);
        Ok(())
    }

    /// All is there, with what came in earlier attempts.
    async fn commit(&mut self, done: Done) -> Result<Taken, Setback> {
        let sink = self.sink.take().ok_or(Failure::Thread("disk"))?;
        let resumed_at = self.held_at_first;
        let len = self.limit.settle(sink.commit()).await??;
        Ok(Taken::All(Done { bytes: len.saturating_sub(resumed_at), resumed_at, ..done }))
    }

    /// There is no rest: what is here is all of it, or part of something that is no more.
    async fn on_no_rest(&mut self, done: Done, held: u64, headers: &HeaderMap) -> Result<Taken, Setback> {
        let names_len = headers
            .get(header::CONTENT_RANGE)
            .is_some_and(|range| range == format!("bytes */{held}").as_str());
        // Another version may be as long.
        let validator = self.validator.as_deref();
        let is_all = names_len && validator.is_some_and(|validator| may_be_same_version(validator, headers));
        if is_all {
            return self.commit(done).await;
        }
        self.begin_anew(None)?;
        Ok(Taken::Nothing(done.url, "what is here is no part of what the server has now"))
    }

    async fn receive(
        &mut self,
        done: &mut Done,
        mut body: Body,
        expected: Option<u64>,
        refusal: &Refusal,
    ) -> Result<Option<Elsewhere>, Failure> {
        let bar = match expected {
            Some(len) => self.job.bars.download(&self.item.name, done.resumed_at, done.resumed_at + len),
            None => self.job.bars.open_ended(&self.item.name),
        };
        let received = self.copy(done, &mut body, expected, &bar).await;
        bar.finish_and_clear();
        let hint = || match &self.job.args.http.continue_at {
            Some(_) => " (what came is kept: the same command goes on there)",
            None => " (--retry tries again, -C - goes on where it was cut)",
        };
        let cut =
            |why: String| Failure::Http { what: done.url.to_string(), why: why + hint(), exit: exit::CUT };
        match received {
            Ok(Ok(None)) => {}
            Ok(Ok(rest)) => return Ok(rest),
            Ok(Err(error)) => {
                let came = Size(done.bytes);
                return Err(match judge(&error, refusal, &done.url) {
                    Failure::Http { why, .. } => cut(format!("the body was cut after {came}: {why}")),
                    failure => failure,
                });
            }
            Err(Failure::Http { what, why, exit: exit::TOO_LATE }) => {
                let hint = match (&self.job.args.http.continue_at, &self.validator) {
                    (Some(_), Some(_)) => hint(),
                    // The server says nothing by which one could go on.
                    (_, None) => "",
                    (None, Some(_)) => " (-C - keeps what comes, and goes on there)",
                };
                return Err(Failure::Http { what, why: why + hint, exit: exit::TOO_LATE });
            }
            Err(failure) => return Err(failure),
        }
        if let Some(expected) = expected.filter(|expected| *expected != done.bytes) {
            if done.bytes > expected {
                // Nobody knows where to go on.
                self.begin_anew(None)?;
            }
            return Err(cut(format!("the body was cut: {} of {expected} bytes came", done.bytes)));
        }
        Ok(None)
    }
}

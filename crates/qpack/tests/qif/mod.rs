//! The files of the corpus github.com/qpackers/qifs: lists of fields as text, and what encoders made of them.

use fulmar_qpack::{Encoder, EncoderConfig, Field, FieldRef, PeerSettings};

/// How a file was encoded, from the end of its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Mode {
    /// SETTINGS_QPACK_MAX_TABLE_CAPACITY.
    pub(crate) capacity: usize,
    /// SETTINGS_QPACK_BLOCKED_STREAMS.
    pub(crate) blocked: usize,
    /// Whether the decoder acknowledged each section before the next one was encoded, or nothing at all.
    pub(crate) acknowledged: bool,
}

impl Mode {
    /// Reads `NAME.out.CAPACITY.BLOCKED.ACKNOWLEDGED`, and returns the name, too.
    pub(crate) fn of_file(name: &str) -> Option<(&str, Self)> {
        let (qif, mode) = name.split_once(".out.")?;
        let mut numbers = mode.split('.').map(|number| number.parse().ok());
        let (capacity, blocked) = (numbers.next()??, numbers.next()??);
        Some((qif, Self { capacity, blocked, acknowledged: numbers.next()?? == 1 }))
    }
}

/// The lists of a text: a field in a line, its name and its value on either side of a tab, an empty line behind each list.
pub(crate) fn lists(text: &[u8]) -> Vec<Vec<Field>> {
    let mut lists = Vec::new();
    let mut list = Vec::new();
    for line in text.split(|byte| *byte == b'\n') {
        if line.is_empty() {
            if !list.is_empty() {
                lists.push(std::mem::take(&mut list));
            }
        } else if line[0] != b'#' {
            let tab = line.iter().position(|byte| *byte == b'\t').unwrap_or(line.len());
            let value = line.get(tab + 1..).unwrap_or_default();
            list.push(Field::new(line[..tab].to_vec(), value.to_vec()));
        }
    }
    lists.extend((!list.is_empty()).then_some(list));
    lists
}

/// A list in the form of such a text. The N bit is not in it.
pub(crate) fn without_marks(mut fields: Vec<Field>) -> Vec<Field> {
    fields.iter_mut().for_each(|field| field.sensitive = false);
    fields
}

/// The blocks of an encoded file: streams and bytes. Stream 0 is the encoder stream.
pub(crate) fn blocks(mut file: &[u8]) -> Vec<(u64, &[u8])> {
    let mut blocks = Vec::new();
    while let Some((head, rest)) = file.split_at_checked(12) {
        let stream_id = u64::from_be_bytes(head[..8].try_into().expect("eight bytes"));
        let len = u32::from_be_bytes(head[8..].try_into().expect("four bytes")) as usize;
        let Some((block, rest)) = rest.split_at_checked(len) else { break };
        blocks.push((stream_id, block));
        file = rest;
    }
    blocks
}

/// Encodes lists as a file of the corpus; the streams are numbered from one.
pub(crate) fn encode(lists: &[Vec<Field>], mode: Mode, config: EncoderConfig) -> Vec<u8> {
    let mut encoder = Encoder::new(config);
    let settings =
        PeerSettings { max_table_capacity: mode.capacity as u64, blocked_streams: mode.blocked as u64 };
    encoder.on_settings(settings).expect("the first settings");
    let (mut file, mut known) = (Vec::new(), 0);
    for (stream_id, list) in (1..).zip(lists) {
        let (mut section, mut stream) = (Vec::new(), Vec::new());
        encoder.encode(stream_id, list.iter().map(FieldRef::from), &mut section, &mut stream);
        add_block(&mut file, 0, &stream);
        add_block(&mut file, stream_id, &section);
        if mode.acknowledged {
            acknowledge(&mut encoder, stream_id, &section, &mut known);
        }
    }
    file
}

fn add_block(file: &mut Vec<u8>, stream_id: u64, block: &[u8]) {
    if !block.is_empty() {
        file.extend(stream_id.to_be_bytes());
        file.extend((block.len() as u32).to_be_bytes());
        file.extend(block);
    }
}

/// What a decoder would answer: the section if it has references, and all inserts.
fn acknowledge(encoder: &mut Encoder, stream_id: u64, section: &[u8], known: &mut u64) {
    let mut answer = Vec::new();
    let news = encoder.inserted() - *known;
    if news > 0 {
        add_integer(&mut answer, 0, 6, news);
        *known = encoder.inserted();
    }
    if section[0] != 0 {
        add_integer(&mut answer, 0x80, 7, stream_id);
    }
    encoder.on_decoder_stream(&answer).expect("what was sent is acknowledged");
}

/// A prefixed integer (RFC 7541 §5.1).
fn add_integer(out: &mut Vec<u8>, flags: u8, prefix_bits: u32, value: u64) {
    let prefix_max = (1 << prefix_bits) - 1;
    if value < prefix_max {
        out.push(flags | value as u8);
        return;
    }
    out.push(flags | prefix_max as u8);
    let mut rest = value - prefix_max;
    while rest >= 0x80 {
        out.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    out.push(rest as u8);
}

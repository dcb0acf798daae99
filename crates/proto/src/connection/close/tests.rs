use super::*;

fn close(answers_last: bool) -> Close {
    Close::new(CloseCode::Application(VarInt::from_u32(7)), Bytes::new(), answers_last)
}

#[test]
fn what_was_sent_is_handed_over_when_nothing_else_is_to_be_said() {
    let mut at_once = close(false);
    assert!(at_once.take_sent().is_none(), "nothing was sent");
    at_once.on_sent(&[1]);
    at_once.on_datagram(None);
    assert!(at_once.take_sent().is_none(), "somebody waits for an answer");
    at_once.on_sent(&[2]);
    assert_eq!(at_once.take_sent().as_deref(), Some(&[2][..]));
    let mut answers_last = close(true);
    answers_last.on_sent(&[3]);
    assert!(answers_last.take_sent().is_none(), "an answer may follow at the end");
}

use super::*;

#[test]
fn single_datagrams_for_some_turns_are_a_conversation() {
    let mut conversation = Conversation::default();
    for _ in 0..TURNS {
        assert!(!conversation.is_on());
        conversation.on_received(true);
        conversation.on_sent(true);
    }
    assert!(conversation.is_on());
}

#[test]
fn more_than_one_datagram_at_a_time_ends_the_conversation() {
    let mut conversation = Conversation::default();
    let ends: [fn(&mut Conversation); 2] = [|it| it.on_sent(false), |it| it.on_received(false)];
    for end in ends {
        (0..TURNS).for_each(|_| conversation.on_received(true));
        assert!(conversation.is_on());
        end(&mut conversation);
        assert!(!conversation.is_on());
    }
}

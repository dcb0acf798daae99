//! What is known of the losses of a path.

/// How much an observation counts when another one has come: the last thousand symbols or so matter.
const MEMORY: f64 = 0.999;

/// What is believed before anything was seen, as observations: a loss after 100 symbols that arrived.
const PRIOR_DELIVERED: f64 = 100.0;
/// See [`PRIOR_DELIVERED`]: the loss, and that losses come alone.
const PRIOR_LOST: f64 = 1.0;

/// The model of Gilbert with two states: after a symbol that arrived the next one is lost with one probability, after a lost
/// one with another, so that losses come in bursts. Both are estimated from what became of the symbols, in their order.
#[derive(Debug, Clone)]
pub struct LossEstimate {
    /// Whether the symbol before was lost.
    last_lost: bool,
    /// Weights of the observations: what came after a symbol that arrived.
    delivered_then: Observed,
    /// What came after a lost symbol.
    lost_then: Observed,
    seen: u64,
    lost: u64,
}

/// Weights of observations.
#[derive(Debug, Clone, Copy)]
struct Observed {
    delivered: f64,
    lost: f64,
}

impl Observed {
    fn note(&mut self, lost: bool) {
        self.delivered *= MEMORY;
        self.lost *= MEMORY;
        *if lost { &mut self.lost } else { &mut self.delivered } += 1.0;
    }

    fn loss_probability(self) -> f64 {
        self.lost / (self.delivered + self.lost)
    }
}

impl Default for LossEstimate {
    fn default() -> Self {
        Self {
            last_lost: false,
            delivered_then: Observed { delivered: PRIOR_DELIVERED, lost: PRIOR_LOST },
            lost_then: Observed { delivered: PRIOR_LOST, lost: PRIOR_LOST / PRIOR_DELIVERED },
            seen: 0,
            lost: 0,
        }
    }
}

impl LossEstimate {
    /// Notes what became of the next symbol.
    pub fn note(&mut self, lost: bool) {
        if self.last_lost { &mut self.lost_then } else { &mut self.delivered_then }.note(lost);
        self.last_lost = lost;
        self.seen += 1;
        self.lost += u64::from(lost);
    }

    /// A symbol that was noted as lost has arrived after all. Which one, and what came before it, is not remembered.
    pub fn excuse(&mut self) {
        self.lost = self.lost.saturating_sub(1);
        let weights = [&mut self.delivered_then, &mut self.lost_then];
        // Most losses come after a symbol that arrived.
        let Some(observed) = weights.into_iter().find(|observed| observed.lost >= 1.0) else { return };
        observed.lost -= 1.0;
        observed.delivered += 1.0;
    }

    /// The number of symbols that were noted.
    pub fn seen(&self) -> u64 {
        self.seen
    }

    /// The number of losses that were noted.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// The part of the symbols that gets lost: 0 to 1.
    pub fn loss_rate(&self) -> f64 {
        let begins = self.delivered_then.loss_probability();
        begins / (begins + self.burst_ends())
    }

    /// The probability that any of so many symbols in a row is lost: 0 to 1.
    pub fn any_lost(&self, symbols: u16) -> f64 {
        let goes_on = 1.0 - self.delivered_then.loss_probability();
        match symbols.checked_sub(1) {
            Some(others) => 1.0 - (1.0 - self.loss_rate()) * goes_on.powi(others.into()),
            None => 0.0,
        }
    }

    /// The mean number of losses in a row: 1 or more.
    pub fn burst_length(&self) -> f64 {
        1.0 / self.burst_ends()
    }

    /// The smallest number of repair symbols, sent behind `count` source symbols, with which at most as many of all these are
    /// lost with the probability `target`. At most `repairs_max`, even if that is too few.
    pub fn repairs_for(&self, count: u16, target: f64, repairs_max: u16) -> u16 {
        let begins = self.delivered_then.loss_probability();
        let goes_on = self.lost_then.loss_probability();
        let rate = self.loss_rate();
        let enough = usize::from(repairs_max);
        // Probabilities of so many losses so far, with the last symbol delivered or lost. Counts that no number of repair
        // symbols would do for are not followed.
        let mut delivered = vec![0.0; enough + 1];
        let mut lost = vec![0.0; enough + 1];
        (delivered[0], lost[0]) = (1.0 - rate, rate);
        for sent in 1..=usize::from(count) + enough {
            for losses in (0..=enough).rev() {
                let (was_delivered, was_lost) = (delivered[losses], lost[losses]);
                delivered[losses] = was_delivered * (1.0 - begins) + was_lost * (1.0 - goes_on);
                lost[losses] = match losses.checked_sub(1) {
                    Some(before) => delivered[before] * begins + lost[before] * goes_on,
                    None => 0.0,
                };
            }
            if let Some(repairs) = sent.checked_sub(count.into()) {
                let recovered: f64 = delivered[..=repairs].iter().chain(&lost[..=repairs]).sum();
                if recovered >= target {
                    // At most `repairs_max`.
                    return repairs as u16;
                }
            }
        }
        repairs_max
    }

    fn burst_ends(&self) -> f64 {
        1.0 - self.lost_then.loss_probability()
    }
}

//! How much work a decoder may still do.

use super::Limits;

/// Counts the bytes that are multiplied, per call and in all.
#[derive(Debug)]
pub(super) struct Budget {
    per_call: u64,
    total: u64,
    per_source_byte: u64,
    left_in_call: u64,
    left: u64,
    spent: u64,
}

impl Budget {
    pub(super) fn new(limits: &Limits) -> Self {
        Self {
            per_call: limits.work_per_call,
            total: limits.work_total,
            per_source_byte: limits.work_per_source_byte,
            left_in_call: 0,
            left: limits.work_total,
            spent: 0,
        }
    }

    pub(super) fn begin_call(&mut self) {
        self.left_in_call = self.per_call;
    }

    /// A source symbol arrived: what a peer sends in good faith pays for its repairs.
    pub(super) fn earn(&mut self, bytes: usize) {
        let earned = self.per_source_byte.saturating_mul(bytes as u64);
        self.left = self.left.saturating_add(earned).min(self.total);
    }

    /// Takes this much work out of the budget; false, and nothing is taken, if there is not enough.
    pub(super) fn spend(&mut self, work: u64) -> bool {
        if work > self.left_in_call.min(self.left) {
            return false;
        }
        self.left_in_call -= work;
        self.left -= work;
        self.spent += work;
        true
    }

    /// All that was taken.
    pub(super) fn spent(&self) -> u64 {
        self.spent
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_limited_and_so_are_all_together() {
        let limits =
            Limits { work_per_call: 10, work_total: 25, work_per_source_byte: 2, ..Limits::default() };
        let mut budget = Budget::new(&limits);
        assert!(!budget.spend(1), "no call has begun");
        for _ in 0..2 {
            budget.begin_call();
            assert!(!budget.spend(11));
            assert!(budget.spend(10));
            assert!(!budget.spend(1));
        }
        budget.begin_call();
        assert!(!budget.spend(6), "five are left in all");
        budget.earn(1);
        assert!(budget.spend(7));
        budget.earn(usize::MAX);
        budget.begin_call();
        assert!(budget.spend(10));
        assert_eq!(budget.spent(), 37);
    }
}

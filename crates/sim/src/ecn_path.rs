//! Middleboxes that do not keep ECN codepoints.

use crate::{Change, Context, DropReason, Ecn, Element, Packet};

/// What a path does to ECN codepoints, apart from the marks of its queues.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum EcnPath {
    /// They arrive as they left.
    #[default]
    Keep,
    /// They are erased: all packets arrive as Not-ECT.
    Bleach,
    /// Packets that have one are dropped.
    Drop,
    /// ECT(0) and ECT(1) are exchanged.
    Swap,
    /// ECT(1) becomes ECT(0), as at a router that knows only one of them.
    Downgrade,
    /// Every packet that has one arrives as marked with congestion.
    MarkAll,
    /// Marks of congestion are erased: they arrive as ECT(0).
    HideCongestion,
}

/// Treats codepoints as an [`EcnPath`] says.
#[derive(Debug)]
pub(crate) struct EcnTreatment(pub(crate) EcnPath);

impl EcnPath {
    /// What becomes of a codepoint; `None` if the packet is dropped.
    fn treat(self, ecn: Ecn) -> Option<Ecn> {
        Some(match (self, ecn) {
            (Self::Drop, Ecn::Ect0 | Ecn::Ect1 | Ecn::Ce) => return None,
            (Self::Bleach, _) => Ecn::NotEct,
            (Self::Swap | Self::Downgrade, Ecn::Ect1) | (Self::HideCongestion, Ecn::Ce) => Ecn::Ect0,
            (Self::Swap, Ecn::Ect0) => Ecn::Ect1,
            (Self::MarkAll, Ecn::Ect0 | Ecn::Ect1) => Ecn::Ce,
            (_, ecn) => ecn,
        })
    }
}

impl Element for EcnTreatment {
    fn accept(&mut self, mut packet: Packet, cx: &mut Context<'_>) {
        match self.0.treat(packet.ecn) {
            Some(ecn) => {
                packet.ecn = ecn;
                cx.pass(packet);
            }
            None => cx.discard(packet, DropReason::Ecn),
        }
    }

    fn is_transparent(&self) -> bool {
        self.0 == EcnPath::Keep
    }

    fn apply(&mut self, change: &Change, _cx: &mut Context<'_>) {
        if let Change::EcnPath(path) = change {
            self.0 = *path;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_treatment_gives_each_codepoint_its_fate() {
        use Ecn::{Ce, Ect0, Ect1, NotEct};
        let all = [NotEct, Ect0, Ect1, Ce];
        let fates = |path: EcnPath| all.map(|ecn| path.treat(ecn));
        assert_eq!(fates(EcnPath::Keep), all.map(Some));
        assert_eq!(fates(EcnPath::Bleach), [Some(NotEct); 4]);
        assert_eq!(fates(EcnPath::Drop), [Some(NotEct), None, None, None]);
        assert_eq!(fates(EcnPath::Swap), [NotEct, Ect1, Ect0, Ce].map(Some));
        assert_eq!(fates(EcnPath::Downgrade), [NotEct, Ect0, Ect0, Ce].map(Some));
        assert_eq!(fates(EcnPath::MarkAll), [NotEct, Ce, Ce, Ce].map(Some));
        assert_eq!(fates(EcnPath::HideCongestion), [NotEct, Ect0, Ect1, Ect0].map(Some));
    }
}

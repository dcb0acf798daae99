//! Only tests: see `tests`.

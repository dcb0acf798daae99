//! The erasure codes of Fulmar against those of others, in tests.

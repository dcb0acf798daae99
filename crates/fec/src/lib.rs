//! Forward erasure correction.
#![deny(unsafe_op_in_unsafe_fn)]

pub mod gf256;
mod kernel;

pub use kernel::Kernel;

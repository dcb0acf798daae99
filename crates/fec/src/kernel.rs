//! The two loops that cost time: adding a symbol to another one, times a coefficient or as it is.
//!
//! There is one implementation for each kind of vector instructions. All give the same bytes; which one is used depends
//! on the processor and is chosen when an encoder or a decoder is made.

#[cfg(target_arch = "aarch64")]
mod aarch64;
mod scalar;
#[cfg(target_arch = "x86_64")]
mod x86_64;

use std::fmt;

/// An implementation of the inner loops. A value exists only if the processor can run it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Kernel(Kind);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Scalar,
    #[cfg(target_arch = "x86_64")]
    Ssse3,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "x86_64")]
    GfniAvx2,
    #[cfg(target_arch = "x86_64")]
    GfniAvx512,
    #[cfg(target_arch = "aarch64")]
    Neon,
}

/// All kinds that were compiled, the fastest last.
const KINDS: &[Kind] = &[
    Kind::Scalar,
    #[cfg(target_arch = "x86_64")]
    Kind::Ssse3,
    #[cfg(target_arch = "x86_64")]
    Kind::Avx2,
    #[cfg(target_arch = "x86_64")]
    Kind::GfniAvx2,
    #[cfg(target_arch = "x86_64")]
    Kind::GfniAvx512,
    #[cfg(target_arch = "aarch64")]
    Kind::Neon,
];

impl Kernel {
    /// The one without vector instructions, which runs everywhere.
    pub const SCALAR: Self = Self(Kind::Scalar);

    /// The fastest one that this processor can run.
    pub fn best() -> Self {
        Self::available().last().unwrap_or(Self::SCALAR)
    }

    /// Those that this processor can run, the fastest last.
    pub fn available() -> impl Iterator<Item = Self> {
        KINDS.iter().copied().filter(|kind| kind.is_supported()).map(Self)
    }

    /// The one with this name ([`Kernel::name`]), or `None` if the processor cannot run it or there is none.
    pub fn named(name: &str) -> Option<Self> {
        Self::available().find(|kernel| kernel.name() == name)
    }

    /// `scalar`, `ssse3`, `avx2`, `gfni-avx2`, `gfni-avx512` or `neon`.
    pub fn name(self) -> &'static str {
        match self.0 {
            Kind::Scalar => "scalar",
            #[cfg(target_arch = "x86_64")]
            Kind::Ssse3 => "ssse3",
            #[cfg(target_arch = "x86_64")]
            Kind::Avx2 => "avx2",
            #[cfg(target_arch = "x86_64")]
            Kind::GfniAvx2 => "gfni-avx2",
            #[cfg(target_arch = "x86_64")]
            Kind::GfniAvx512 => "gfni-avx512",
            #[cfg(target_arch = "aarch64")]
            Kind::Neon => "neon",
        }
    }

    /// Adds `src` times `coefficient` to the beginning of `dst`, in GF(256).
    ///
    /// # Panics
    /// Panics if `src` is longer than `dst`.
    pub fn mul_add(self, dst: &mut [u8], src: &[u8], coefficient: u8) {
        let dst = &mut dst[..src.len()];
        match coefficient {
            0 => {}
            1 => self.xor(dst, src),
            _ => self.mul_add_same_length(dst, src, coefficient),
        }
    }

    /// Adds `src` to the beginning of `dst`, in GF(256): XOR.
    ///
    /// # Panics
    /// Panics if `src` is longer than `dst`.
    pub fn xor(self, dst: &mut [u8], src: &[u8]) {
        // The compiler makes vectors of this by itself, and memory is the limit.
        for (dst, src) in dst[..src.len()].iter_mut().zip(src) {
            *dst ^= src;
        }
    }

    fn mul_add_same_length(self, dst: &mut [u8], src: &[u8], coefficient: u8) {
        match self.0 {
            Kind::Scalar => scalar::mul_add(dst, src, coefficient),
            #[cfg(target_arch = "x86_64")]
            // SAFETY: a value of this kind is only made after `is_supported` has found SSSE3.
            Kind::Ssse3 => unsafe { x86_64::mul_add_ssse3(dst, src, coefficient) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: a value of this kind is only made after `is_supported` has found AVX2.
            Kind::Avx2 => unsafe { x86_64::mul_add_avx2(dst, src, coefficient) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: a value of this kind is only made after `is_supported` has found GFNI, AVX and AVX2.
            Kind::GfniAvx2 => unsafe { x86_64::mul_add_gfni_avx2(dst, src, coefficient) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: a value of this kind is only made after `is_supported` has found GFNI, AVX512F and AVX512BW.
            Kind::GfniAvx512 => unsafe { x86_64::mul_add_gfni_avx512(dst, src, coefficient) },
            #[cfg(target_arch = "aarch64")]
            // SAFETY: a value of this kind is only made after `is_supported` has found NEON.
            Kind::Neon => unsafe { aarch64::mul_add_neon(dst, src, coefficient) },
        }
    }
}

impl Kind {
    /// Whether the processor has the instructions. The standard library asks it once.
    fn is_supported(self) -> bool {
        match self {
            Self::Scalar => true,
            #[cfg(target_arch = "x86_64")]
            Self::Ssse3 => is_x86_feature_detected!("ssse3"),
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => is_x86_feature_detected!("avx2"),
            #[cfg(target_arch = "x86_64")]
            Self::GfniAvx2 => is_x86_feature_detected!("gfni") && is_x86_feature_detected!("avx2"),
            #[cfg(target_arch = "x86_64")]
            Self::GfniAvx512 => {
                is_x86_feature_detected!("gfni")
                    && is_x86_feature_detected!("avx512f")
                    && is_x86_feature_detected!("avx512bw")
            }
            #[cfg(target_arch = "aarch64")]
            Self::Neon => std::arch::is_aarch64_feature_detected!("neon"),
        }
    }
}

impl fmt::Debug for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Kernel({})", self.name())
    }
}

#[cfg(test)]
mod tests;

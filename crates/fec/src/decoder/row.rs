//! A repair symbol as an equation.

use super::DecodeError;
use crate::gf256;
use crate::kernel::Kernel;

/// The sum of unknown symbols, each times its coefficient, equals `data`.
#[derive(Debug)]
pub(super) struct Row {
    /// By column; that of a symbol which is known or not in the window is 0.
    coefficients: Vec<u8>,
    /// What is known of the sum; it goes on with zeros.
    data: Vec<u8>,
}

impl Row {
    /// An equation over `columns` columns without coefficients, in a buffer that is used again.
    pub(super) fn new(columns: usize, mut buffer: Vec<u8>, data: &[u8]) -> Self {
        buffer.clear();
        buffer.reserve_exact(data.len());
        buffer.extend_from_slice(data);
        Self { coefficients: vec![0; columns], data: buffer }
    }

    pub(super) fn set(&mut self, column: usize, coefficient: u8) {
        self.coefficients[column] = coefficient;
    }

    pub(super) fn coefficient(&self, column: usize) -> u8 {
        self.coefficients[column]
    }

    /// Makes the place of each symbol that the equation has something other than 0.
    pub(super) fn mark_used(&self, used: &mut [u8]) {
        for (used, coefficient) in used.iter_mut().zip(&self.coefficients) {
            *used |= coefficient;
        }
    }

    /// Takes a symbol that has become known out of the equation. One that is longer than the sum contradicts it.
    pub(super) fn subtract_known(
        &mut self,
        kernel: Kernel,
        column: usize,
        packed: &[u8],
    ) -> Result<(), DecodeError> {
        let coefficient = std::mem::take(&mut self.coefficients[column]);
        if coefficient == 0 {
            return Ok(());
        }
        if packed.len() > self.data.len() {
            return Err(DecodeError::Inconsistent);
        }
        kernel.mul_add(&mut self.data, packed, coefficient);
        Ok(())
    }

    /// Takes the pivot of another equation out of this one.
    pub(super) fn eliminate(&mut self, kernel: Kernel, pivot: usize, other: &Self) {
        let coefficient = self.coefficients[pivot];
        if coefficient == 0 {
            return;
        }
        kernel.mul_add(&mut self.coefficients, &other.coefficients, coefficient);
        if self.data.len() < other.data.len() {
            self.data.reserve_exact(other.data.len() - self.data.len());
            self.data.resize(other.data.len(), 0);
        }
        kernel.mul_add(&mut self.data, &other.data, coefficient);
    }

    /// Divides the equation by a coefficient, which is not 0. `buffer` takes the place of the old data, which is returned.
    pub(super) fn normalize(&mut self, kernel: Kernel, pivot: usize, mut buffer: Vec<u8>) -> Vec<u8> {
        let Some(factor) = gf256::inv(self.coefficients[pivot]) else { return buffer };
        for coefficient in &mut self.coefficients {
            *coefficient = gf256::mul(*coefficient, factor);
        }
        buffer.clear();
        buffer.reserve_exact(self.data.len());
        buffer.resize(self.data.len(), 0);
        kernel.mul_add(&mut buffer, &self.data, factor);
        std::mem::replace(&mut self.data, buffer)
    }

    pub(super) fn first_unknown(&self) -> Option<usize> {
        self.coefficients.iter().position(|coefficient| *coefficient != 0)
    }

    /// Whether no symbol but this one is in the equation.
    pub(super) fn is_solved_for(&self, pivot: usize) -> bool {
        let (before, after) = (&self.coefficients[..pivot], &self.coefficients[pivot + 1..]);
        before.iter().chain(after).all(|coefficient| *coefficient == 0)
    }

    /// Whether the sum is zero.
    pub(super) fn is_zero(&self) -> bool {
        self.data.iter().all(|byte| *byte == 0)
    }

    /// The work of adding this equation to another one, in bytes.
    pub(super) fn cost(&self) -> u64 {
        (self.coefficients.len() + self.data.len()) as u64
    }

    pub(super) fn memory(&self) -> usize {
        self.coefficients.capacity() + self.data.capacity()
    }

    /// The sum alone.
    pub(super) fn into_data(self) -> Vec<u8> {
        self.data
    }
}

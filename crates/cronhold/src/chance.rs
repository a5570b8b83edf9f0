//! Random bits from the kernel.

use cronhold_engine::EntropySource;

/// The kernel's random bits.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemEntropy;

impl EntropySource for SystemEntropy {
    fn bits(&self) -> u128 {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes).expect("the kernel always has random bits");
        u128::from_le_bytes(bytes)
    }
}

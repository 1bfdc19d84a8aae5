//! Deterministic numbers and words.

/// A small pseudo-random generator.
pub(super) struct NumberGenerator(u64);

impl NumberGenerator {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// The next number below `limit`.
    pub(super) fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 33).unwrap_or(0) % limit.max(1)
    }

    /// One of `words`.
    pub(super) fn one<'w>(&mut self, words: &[&'w str]) -> &'w str {
        let at = self.below(words.len());
        words.get(at).copied().unwrap_or_default()
    }

    /// `digits` hexadecimal digits.
    pub(super) fn hex(&mut self, digits: usize) -> String {
        (0..digits)
            .map(|_| {
                char::from_digit(u32::try_from(self.below(16)).unwrap_or(0), 16).unwrap_or('0')
            })
            .collect()
    }
}

/// Parts of the shop.
pub(super) const PARTS: [&str; 12] = [
    "orders", "payments", "ledger", "carts", "stock", "refunds", "invoices", "shipping", "queue",
    "sessions", "webhooks", "pricing",
];

/// Verbs for function names.
pub(super) const VERBS: [&str; 14] = [
    "load", "store", "apply", "settle", "retry", "lock", "release", "merge", "expire", "claim",
    "publish", "validate", "enqueue", "resolve",
];

/// Nouns for function names.
pub(super) const THINGS: [&str; 14] = [
    "order", "charge", "attempt", "batch", "receipt", "lease", "cursor", "event", "balance",
    "quote", "address", "voucher", "shipment", "customer",
];

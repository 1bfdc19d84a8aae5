#![no_main]

use libfuzzer_sys::fuzz_target;
use trimtab_fuzz::properties;
use trimtab_model::Dialect;

fuzz_target!(|input: (u8, &[u8])| {
    let (size, stream) = input;
    for dialect in Dialect::ALL {
        properties::sse(stream, dialect, usize::from(size));
    }
});

#![no_main]

use libfuzzer_sys::fuzz_target;
use trimtab_fuzz::properties;
use trimtab_model::Dialect;

fuzz_target!(|body: &[u8]| {
    for dialect in Dialect::ALL {
        properties::splice_any(body, dialect);
    }
});

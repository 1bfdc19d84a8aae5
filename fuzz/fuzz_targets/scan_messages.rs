#![no_main]

use libfuzzer_sys::fuzz_target;
use trimtab_fuzz::properties;
use trimtab_model::Dialect;

fuzz_target!(|body: &[u8]| properties::scan(body, Dialect::Messages));

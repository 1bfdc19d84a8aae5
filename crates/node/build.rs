//! Tells the linker how Node loads the module.

fn main() {
    napi_build::setup();
}

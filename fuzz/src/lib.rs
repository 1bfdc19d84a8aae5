//! What the fuzz targets check.

pub mod properties;

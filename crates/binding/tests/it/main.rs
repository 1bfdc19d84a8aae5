//! Sessions of hosts, through the surface that the packages use.

mod hosts;
mod same_bytes;
mod talk;

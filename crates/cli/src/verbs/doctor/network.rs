//! Reports how other machines are reached.

use super::check::DoctorCheck;
use crate::proxy::settings::ResolvedProxy;

/// Reports the certificate authorities and the egress proxy. Invalid settings have been rejected
/// before.
pub(super) fn check(resolved: &ResolvedProxy) -> DoctorCheck {
    let mut found = Vec::new();
    if let Some(path) = &resolved.config.network.ca_file {
        found.push(format!("certificate authorities of {}", path.display()));
    }
    let upstreams = resolved.proxy.upstreams().into_iter();
    let addresses = upstreams.filter_map(|upstream| upstream.address("/"));
    let mut proxies: Vec<String> = addresses
        .filter_map(|address| resolved.outgoing.proxy_for(&address))
        .collect();
    // Upstreams usually share one egress proxy.
    proxies.dedup();
    found.extend(proxies.iter().map(|proxy| format!("egress proxy {proxy}")));
    let found = match found.as_slice() {
        [] => "no egress proxy, built-in certificate authorities".to_owned(),
        found => found.join(", "),
    };
    DoctorCheck::ok("network", found)
}

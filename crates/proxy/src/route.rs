//! Which upstream a request goes to.

use std::sync::Arc;

use globset::{GlobBuilder, GlobMatcher};
use http::uri::{Authority, PathAndQuery, Scheme};
use http::{HeaderMap, Uri};
use trimtab_model::Dialect;

use crate::config::{Mode, ModelRule, ProxyConfig, Upstream};

/// An upstream, ready to be sent to.
#[derive(Debug)]
pub(crate) struct Route {
    /// Its settings.
    pub(crate) upstream: Upstream,
    scheme: Scheme,
    authority: Authority,
    base: String,
    models: Vec<GlobMatcher>,
}

impl Route {
    fn new(upstream: Upstream) -> Option<Self> {
        let uri: Uri = upstream.url.parse().ok()?;
        let models = upstream.models.iter().filter_map(|glob| matcher(glob));
        Some(Self {
            scheme: uri.scheme()?.clone(),
            authority: uri.authority()?.clone(),
            base: uri.path().trim_end_matches('/').to_owned(),
            models: models.collect(),
            upstream,
        })
    }

    /// The address of `path`, which may have a query, at this upstream.
    pub(crate) fn address(&self, path: &str) -> Option<Uri> {
        let path = if path.starts_with('/') { path } else { "/" };
        let path = format!("{}{path}", self.base);
        Uri::builder()
            .scheme(self.scheme.clone())
            .authority(self.authority.clone())
            .path_and_query(path.parse::<PathAndQuery>().ok()?)
            .build()
            .ok()
    }

    /// The part of `path` that is sent, if it is one of ours.
    fn rest<'p>(&self, path: &'p str) -> Option<&'p str> {
        let rest = path.strip_prefix(self.upstream.prefix.as_str())?;
        let ends = rest.is_empty() || rest.starts_with(['/', '?']);
        ends.then_some(rest)
    }

    fn takes(&self, dialect: Dialect) -> bool {
        self.upstream.dialects.is_empty() || self.upstream.dialects.contains(&dialect)
    }

    fn serves(&self, model: Option<&str>) -> bool {
        self.models.is_empty()
            || model.is_some_and(|model| self.models.iter().any(|glob| glob.is_match(model)))
    }
}

/// A glob over whole names, in which `*` also stands for slashes.
fn matcher(glob: &str) -> Option<GlobMatcher> {
    let glob = GlobBuilder::new(glob).literal_separator(false).build();
    glob.ok().map(|glob| glob.compile_matcher())
}

/// All upstreams, and what holds for some models.
#[derive(Debug)]
pub(crate) struct Routes {
    routes: Vec<Arc<Route>>,
    rules: Vec<(GlobMatcher, ModelRule)>,
}

impl Routes {
    /// The routes of these settings, which were checked.
    pub(crate) fn new(config: &ProxyConfig) -> Self {
        let mut routes: Vec<Arc<Route>> = config
            .upstreams()
            .into_iter()
            .filter_map(Route::new)
            .map(Arc::new)
            .collect();
        // The longest prefix, then the narrowest choice; else the order of the settings.
        routes.sort_by_key(|route| {
            let upstream = &route.upstream;
            let narrow = (upstream.models.is_empty(), upstream.dialects.is_empty());
            (std::cmp::Reverse(upstream.prefix.len()), narrow)
        });
        let rules = config.models.iter();
        Self {
            routes,
            rules: rules
                .filter_map(|rule| Some((matcher(&rule.model)?, rule.clone())))
                .collect(),
        }
    }

    /// The upstream for a request, and the part of its path that is sent there.
    pub(crate) fn choose<'p>(
        &self,
        path: &'p str,
        dialect: Dialect,
        model: Option<&str>,
    ) -> Option<(Arc<Route>, &'p str)> {
        let fitting = self
            .routes
            .iter()
            .filter_map(|route| Some((route, route.rest(path)?)));
        let best = fitting
            .clone()
            .find(|(route, _)| route.takes(dialect) && route.serves(model));
        let any = || fitting.clone().find(|(route, _)| route.takes(dialect));
        let (route, rest) = best.or_else(any).or_else(|| fitting.clone().next())?;
        Some((Arc::clone(route), rest))
    }

    /// What holds for a model.
    pub(crate) fn rule(&self, model: &str) -> Option<&ModelRule> {
        let mut rules = self.rules.iter();
        rules
            .find(|(glob, _)| glob.is_match(model))
            .map(|(_, rule)| rule)
    }

    /// What is done with a request unless its headers say otherwise.
    pub(crate) fn mode(&self, config: &ProxyConfig, route: &Route, model: Option<&str>) -> Mode {
        let by_model = model.and_then(|model| self.rule(model)?.mode);
        by_model.or(route.upstream.mode).unwrap_or(config.mode)
    }
}

/// The dialect of the client, where the path does not tell.
pub(crate) fn dialect_of_client(headers: &HeaderMap) -> Dialect {
    let anthropic = headers.contains_key("anthropic-version") || headers.contains_key("x-api-key");
    if anthropic {
        Dialect::Messages
    } else {
        Dialect::Chat
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn routes() -> Routes {
        let text = r#"
            [[upstreams]]
            name = "rest"
            url = "http://rest.test/api/"
            [[upstreams]]
            name = "claude"
            url = "http://claude.test"
            dialects = ["messages"]
            [[upstreams]]
            name = "small"
            url = "http://small.test"
            models = ["qwen*"]
            [[upstreams]]
            name = "router"
            url = "http://router.test"
            prefix = "/router"
        "#;
        Routes::new(&ProxyConfig::from_toml(text).unwrap())
    }

    fn sent(path: &str, dialect: Dialect, model: Option<&str>) -> String {
        let routes = routes();
        let (route, rest) = routes.choose(path, dialect, model).unwrap();
        route.address(rest).unwrap().to_string()
    }

    #[test]
    fn the_narrowest_upstream_is_chosen() {
        let chat = "/v1/chat/completions";
        assert_eq!(
            sent(chat, Dialect::Chat, Some("gpt")),
            "http://rest.test/api/v1/chat/completions"
        );
        assert_eq!(
            sent(chat, Dialect::Chat, Some("qwen3")),
            "http://small.test/v1/chat/completions"
        );
        assert_eq!(
            sent("/v1/messages?beta=true", Dialect::Messages, Some("c")),
            "http://claude.test/v1/messages?beta=true"
        );
        assert_eq!(
            sent("/router/v1/x", Dialect::Messages, None),
            "http://router.test/v1/x"
        );
        assert_eq!(
            sent("/routers/v1/x", Dialect::Chat, None),
            "http://rest.test/api/routers/v1/x"
        );
    }

    #[test]
    fn no_path_leads_to_another_host() {
        for path in [
            "//evil.test/x",
            "/@evil.test/",
            "/\\evil.test",
            "/..//evil.test",
            "/?http://evil.test",
            "/%2f%2fevil.test",
            "",
        ] {
            let routes = routes();
            let Some((route, rest)) = routes.choose(path, Dialect::Chat, None) else {
                continue;
            };
            if let Some(uri) = route.address(rest) {
                assert_eq!(uri.host(), Some("rest.test"), "{path}");
            }
        }
    }
}

//! Chooses the upstream of a request by its path, dialect and model. A request carries a key, so
//! one that no upstream is meant for is sent nowhere.

use std::sync::Arc;

use globset::{GlobBuilder, GlobMatcher};
use http::header::AUTHORIZATION;
use http::{HeaderMap, Uri};
use trimtab::provider::Provider;

use crate::config::{ModelRule, ProxyConfig, ProxyMode, UpstreamConfig};
use crate::routing::spoken_dialects::{API_KEY, NoRoute, SpokenDialects};

/// An upstream with its compiled rules.
#[derive(Debug)]
pub(crate) struct UpstreamRoute {
    /// Its settings.
    pub(crate) upstream: UpstreamConfig,
    /// The provider, if it is a provider's official address.
    provider: Option<Provider>,
    models: Vec<GlobMatcher>,
}

impl UpstreamRoute {
    fn new(upstream: UpstreamConfig) -> Option<Self> {
        let host = upstream.address("/")?.host()?.to_owned();
        let models = upstream.models.iter().filter_map(|glob| matcher(glob));
        Some(Self {
            provider: Provider::of_host(&host),
            models: models.collect(),
            upstream,
        })
    }

    /// The address of `path`, which may have a query, at this upstream.
    pub(crate) fn address(&self, path: &str) -> Option<Uri> {
        self.upstream.address(path)
    }

    /// The part of `path` after our prefix; none if the path does not match.
    fn upstream_path<'p>(&self, path: &'p str) -> Option<&'p str> {
        let rest = path.strip_prefix(self.upstream.prefix.as_str())?;
        // A prefix ends at a slash: `/anthropic` is no prefix of `/anthropic2/v1`.
        let ends = rest.is_empty() || rest.starts_with(['/', '?']);
        ends.then_some(rest)
    }

    fn takes(&self, spoken: SpokenDialects) -> bool {
        let is_open = self.upstream.dialects.is_empty();
        is_open
            || spoken
                .dialects()
                .iter()
                .any(|one| self.upstream.takes(*one))
    }

    fn serves(&self, model: Option<&str>) -> bool {
        self.models.is_empty()
            || model.is_some_and(|model| self.models.iter().any(|glob| glob.is_match(model)))
    }

    /// False if this is a provider's official address and the key clearly belongs to another
    /// provider.
    fn may_see(&self, headers: &HeaderMap) -> bool {
        let Some(provider) = self.provider else {
            return true;
        };
        // OpenAI uses no such header, so the key in it is for somebody else.
        if provider == Provider::OpenAi && headers.contains_key(API_KEY) {
            return false;
        }
        let values = headers.get_all(AUTHORIZATION).iter();
        let mut keys = values.chain(headers.get_all(API_KEY)).map(|value| {
            let text = value.to_str().unwrap_or_default();
            text.strip_prefix("Bearer ").unwrap_or(text).trim()
        });
        keys.all(|key| provider.may_issue(key))
    }
}

/// A glob over whole names, in which `*` also matches slashes.
fn matcher(glob: &str) -> Option<GlobMatcher> {
    let glob = GlobBuilder::new(glob).literal_separator(false).build();
    glob.ok().map(|glob| glob.compile_matcher())
}

/// All upstreams, and the rules for single models.
#[derive(Debug)]
pub(crate) struct RoutingTable {
    routes: Vec<Arc<UpstreamRoute>>,
    rules: Vec<(GlobMatcher, ModelRule)>,
}

impl RoutingTable {
    /// The routes of validated settings.
    pub(crate) fn new(config: &ProxyConfig) -> Self {
        let mut routes: Vec<Arc<UpstreamRoute>> = config
            .upstreams()
            .into_iter()
            .filter_map(UpstreamRoute::new)
            .map(Arc::new)
            .collect();
        // The longest prefix, then the narrowest choice; else the order of the settings.
        // The sort is stable, which keeps the order of the settings among equals.
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

    /// The upstream for a request, and the part of its path that is sent there. An upstream that
    /// does not take the dialect is never chosen, because the request carries a key for another
    /// provider.
    pub(crate) fn choose<'p>(
        &self,
        path: &'p str,
        spoken: impl Into<SpokenDialects>,
        model: Option<&str>,
        headers: &HeaderMap,
    ) -> Result<(Arc<UpstreamRoute>, &'p str), NoRoute> {
        let spoken = spoken.into();
        let all = self.routes.iter();
        let fitting = all.filter_map(|route| Some((route, route.upstream_path(path)?)));
        let taking = fitting.clone().filter(|(route, _)| route.takes(spoken));
        // Requests such as `/v1/models` name no model, and a model may be missing from every list.
        // Both go to the first upstream that takes the dialect.
        let best = taking.clone().find(|(route, _)| route.serves(model));
        let Some((route, rest)) = best.or_else(|| taking.clone().next()) else {
            let is_known = fitting.clone().next().is_some();
            return Err(if is_known {
                NoRoute::Dialect
            } else {
                NoRoute::Path
            });
        };
        match route.provider {
            Some(provider) if !route.may_see(headers) => Err(NoRoute::Key(provider)),
            _ => Ok((Arc::clone(route), rest)),
        }
    }

    /// The first rule that matches a model.
    pub(crate) fn rule(&self, model: &str) -> Option<&ModelRule> {
        let mut rules = self.rules.iter();
        rules
            .find(|(glob, _)| glob.is_match(model))
            .map(|(_, rule)| rule)
    }

    /// The mode of a request, unless its headers set one.
    pub(crate) fn mode(
        &self,
        config: &ProxyConfig,
        route: &UpstreamRoute,
        model: Option<&str>,
    ) -> ProxyMode {
        let by_model = model.and_then(|model| self.rule(model)?.mode);
        by_model.or(route.upstream.mode).unwrap_or(config.mode)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trimtab_model::Dialect;

    fn routes() -> RoutingTable {
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
        RoutingTable::new(&ProxyConfig::from_toml(text).unwrap())
    }

    fn sent(path: &str, dialect: Dialect, model: Option<&str>) -> String {
        let routes = routes();
        let none = HeaderMap::new();
        let (route, rest) = routes.choose(path, dialect, model, &none).unwrap();
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
            let none = HeaderMap::new();
            let Ok((route, rest)) = routes.choose(path, Dialect::Chat, None, &none) else {
                continue;
            };
            if let Some(uri) = route.address(rest) {
                assert_eq!(uri.host(), Some("rest.test"), "{path}");
            }
        }
    }

    fn headers(name: &'static str, value: &'static str) -> HeaderMap {
        HeaderMap::from_iter([(name.parse().unwrap(), value.parse().unwrap())])
    }

    #[test]
    fn a_dialect_without_an_upstream_goes_nowhere() {
        let only = UpstreamConfig::new("m", "http://m.test").for_dialects([Dialect::Messages]);
        let config = ProxyConfig {
            upstreams: vec![only],
            ..ProxyConfig::default()
        };
        let routes = RoutingTable::new(&config);
        let chosen = |path: &str, spoken: SpokenDialects, headers: &HeaderMap| {
            let chosen = routes.choose(path, spoken, None, headers);
            chosen.map(|_| ())
        };
        let none = HeaderMap::new();
        let chat = Dialect::Chat.into();
        let refused = chosen("/v1/chat/completions", chat, &none);
        assert_eq!(refused, Err(NoRoute::Dialect));
        let bearer = headers("authorization", "Bearer k");
        let models = chosen("/v1/models", SpokenDialects::by_client(&bearer), &bearer);
        assert_eq!(models, Err(NoRoute::Dialect));
        let key = headers("x-api-key", "k");
        assert_eq!(
            chosen("/v1/models", SpokenDialects::by_client(&key), &key),
            Ok(())
        );
    }

    #[test]
    fn a_provider_gets_no_key_of_another() {
        let routes = RoutingTable::new(&ProxyConfig::default());
        let sees = |dialect: Dialect, headers: &HeaderMap| {
            let chosen = routes.choose("/v1/x", dialect, None, headers);
            chosen.map(|(route, _)| route.upstream.name.clone())
        };
        let openai = headers("authorization", "Bearer sk-proj-1");
        let anthropic = headers("x-api-key", "sk-ant-1");
        let login = headers("authorization", "Bearer sk-ant-oat-1");
        assert_eq!(sees(Dialect::Chat, &openai).as_deref(), Ok("openai"));
        assert_eq!(
            sees(Dialect::Messages, &anthropic).as_deref(),
            Ok("anthropic")
        );
        assert_eq!(sees(Dialect::Messages, &login).as_deref(), Ok("anthropic"));
        let foreign = |provider| Err(NoRoute::Key(provider));
        assert_eq!(
            sees(Dialect::Messages, &openai),
            foreign(Provider::Anthropic)
        );
        assert_eq!(sees(Dialect::Chat, &anthropic), foreign(Provider::OpenAi));
        assert_eq!(sees(Dialect::Chat, &login), foreign(Provider::OpenAi));
    }

    #[test]
    fn a_version_is_not_repeated() {
        let at = |url: &str, path: &str| {
            UpstreamConfig::new("u", url)
                .address(path)
                .unwrap()
                .to_string()
        };
        let chat = "/v1/chat/completions?a=b";
        for (url, expected) in [
            ("http://h", "http://h/v1/chat/completions?a=b"),
            ("http://h/", "http://h/v1/chat/completions?a=b"),
            ("http://h/v1", "http://h/v1/chat/completions?a=b"),
            ("http://h/v1/", "http://h/v1/chat/completions?a=b"),
            ("http://h/api/v1", "http://h/api/v1/chat/completions?a=b"),
            ("http://h/paas/v4", "http://h/paas/v4/chat/completions?a=b"),
            ("http://h/api", "http://h/api/v1/chat/completions?a=b"),
            ("http://h/vendor", "http://h/vendor/v1/chat/completions?a=b"),
        ] {
            assert_eq!(at(url, chat), expected);
        }
        assert_eq!(at("http://h/v1", "/v1beta/x"), "http://h/v1/v1beta/x");
        assert_eq!(at("http://h/v1", "/models"), "http://h/v1/models");
    }
}

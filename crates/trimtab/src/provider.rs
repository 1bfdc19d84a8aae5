//! The providers whose addresses and keys we know.

use trimtab_model::Dialect;

/// A provider whose own clients speak one or more of the dialects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Provider {
    /// Anthropic, which speaks Messages.
    Anthropic,
    /// `OpenAI`, which speaks Chat Completions and Responses.
    OpenAi,
}

impl Provider {
    /// Every provider.
    pub const ALL: [Self; 2] = [Self::Anthropic, Self::OpenAi];

    /// The provider whose own clients speak `dialect`.
    pub fn of_dialect(dialect: Dialect) -> Self {
        match dialect {
            Dialect::Messages => Self::Anthropic,
            Dialect::Chat | Dialect::Responses => Self::OpenAi,
        }
    }

    /// The provider that `host` belongs to.
    ///
    /// ```
    /// use trimtab::provider::Provider;
    ///
    /// assert_eq!(Provider::of_host("API.OpenAI.com"), Some(Provider::OpenAi));
    /// assert_eq!(Provider::of_host("openai.com.evil.example"), None);
    /// ```
    pub fn of_host(host: &str) -> Option<Self> {
        let is_at = |domain: &str| {
            // A fully qualified host name may end with a dot.
            let host = host.trim_end_matches('.').to_ascii_lowercase();
            host == domain || host.ends_with(&format!(".{domain}"))
        };
        let mut all = Self::ALL.into_iter();
        all.find(|provider| is_at(provider.domain()))
    }

    /// False if a key of this form is clearly issued by another provider.
    ///
    /// ```
    /// use trimtab::provider::Provider;
    ///
    /// assert!(!Provider::OpenAi.may_issue("sk-ant-api03-x"));
    /// assert!(!Provider::Anthropic.may_issue("sk-proj-x"));
    /// assert!(Provider::Anthropic.may_issue("a token of another form"));
    /// ```
    pub fn may_issue(self, key: &str) -> bool {
        let is_anthropic = key.starts_with("sk-ant-");
        match self {
            // Both begin with `sk-`. A key of another form says nothing about its issuer.
            Self::Anthropic => is_anthropic || !key.starts_with("sk-"),
            Self::OpenAi => !is_anthropic,
        }
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Anthropic => "anthropic",
            Self::OpenAi => "openai",
        }
    }

    /// The dialects of its own clients.
    pub fn dialects(self) -> &'static [Dialect] {
        match self {
            Self::Anthropic => &[Dialect::Messages],
            Self::OpenAi => &[Dialect::Chat, Dialect::Responses],
        }
    }

    /// Its API address.
    pub fn url(self) -> &'static str {
        match self {
            Self::Anthropic => "https://api.anthropic.com",
            Self::OpenAi => "https://api.openai.com",
        }
    }

    /// The environment variable with its key.
    pub fn key_variable(self) -> &'static str {
        match self {
            Self::Anthropic => "ANTHROPIC_API_KEY",
            Self::OpenAi => "OPENAI_API_KEY",
        }
    }

    /// The environment variable that sets another address for its clients.
    pub fn base_variable(self) -> &'static str {
        match self {
            Self::Anthropic => "ANTHROPIC_BASE_URL",
            Self::OpenAi => "OPENAI_BASE_URL",
        }
    }

    fn domain(self) -> &'static str {
        match self {
            Self::Anthropic => "anthropic.com",
            Self::OpenAi => "openai.com",
        }
    }
}

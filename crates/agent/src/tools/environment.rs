//! The environment of commands.

use std::ffi::{OsStr, OsString};

/// Variables that commands need to work as in the user's shell. None of them is a key.
const PASSED: &[&str] = &[
    // The user, the system and the language.
    "HOME",
    "HOSTNAME",
    "LANG",
    "LANGUAGE",
    "LOGNAME",
    "PATH",
    "SHELL",
    "TEMP",
    "TMP",
    "TMPDIR",
    "TZ",
    "USER",
    // How output looks, and what a run is.
    "CI",
    "COLUMNS",
    "NO_COLOR",
    "SOURCE_DATE_EPOCH",
    // Certificates.
    "CURL_CA_BUNDLE",
    "GIT_SSL_CAINFO",
    "NIX_SSL_CERT_FILE",
    "NODE_EXTRA_CA_CERTS",
    "PIP_CERT",
    "REQUESTS_CA_BUNDLE",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
    // Compilers and libraries.
    "AR",
    "CC",
    "CFLAGS",
    "CMAKE_GENERATOR",
    "CMAKE_PREFIX_PATH",
    "CPATH",
    "CPPFLAGS",
    "CUDA_HOME",
    "CUDA_PATH",
    "CXX",
    "CXXFLAGS",
    "C_INCLUDE_PATH",
    "LD_LIBRARY_PATH",
    "LDFLAGS",
    "LIBRARY_PATH",
    "MAKEFLAGS",
    "OPENSSL_DIR",
    "PKG_CONFIG_PATH",
    "PROTOC",
    "VCPKG_ROOT",
    // Rust.
    "CARGO_HOME",
    "CARGO_TARGET_DIR",
    "RUSTFLAGS",
    "RUSTUP_HOME",
    "RUSTUP_TOOLCHAIN",
    "RUST_BACKTRACE",
    "RUST_LOG",
    // Go.
    "GOBIN",
    "GOCACHE",
    "GOFLAGS",
    "GOMODCACHE",
    "GOPATH",
    "GOPRIVATE",
    "GOPROXY",
    "GOROOT",
    "GOTOOLCHAIN",
    // Java, Kotlin, Scala, Android.
    "ANDROID_HOME",
    "ANDROID_SDK_ROOT",
    "GRADLE_HOME",
    "GRADLE_USER_HOME",
    "JAVA_HOME",
    "JDK_HOME",
    "M2_HOME",
    "MAVEN_HOME",
    "SDKMAN_DIR",
    // JavaScript.
    "BUN_INSTALL",
    "COREPACK_HOME",
    "DENO_DIR",
    "DENO_INSTALL",
    "FNM_DIR",
    "FNM_MULTISHELL_PATH",
    "NODE_ENV",
    "NODE_OPTIONS",
    "NODE_PATH",
    "NPM_CONFIG_CACHE",
    "NPM_CONFIG_PREFIX",
    "NVM_BIN",
    "NVM_DIR",
    "PNPM_HOME",
    "VOLTA_HOME",
    // Python.
    "CONDA_DEFAULT_ENV",
    "CONDA_EXE",
    "CONDA_PREFIX",
    "PIPX_HOME",
    "PIP_CACHE_DIR",
    "POETRY_HOME",
    "PYENV_ROOT",
    "PYENV_VERSION",
    "PYTHONDONTWRITEBYTECODE",
    "PYTHONHOME",
    "PYTHONPATH",
    "PYTHONUNBUFFERED",
    "UV_CACHE_DIR",
    "VIRTUAL_ENV",
    // Ruby, PHP, .NET, Haskell, OCaml, Julia, R, Elixir, Swift.
    "BUNDLE_PATH",
    "CABAL_DIR",
    "COMPOSER_HOME",
    "DOTNET_ROOT",
    "GEM_HOME",
    "GEM_PATH",
    "GHCUP_INSTALL_BASE_PREFIX",
    "HEX_HOME",
    "JULIA_DEPOT_PATH",
    "MIX_HOME",
    "NUGET_PACKAGES",
    "OPAMROOT",
    "OPAM_SWITCH_PREFIX",
    "RBENV_ROOT",
    "R_HOME",
    "R_LIBS_USER",
    "STACK_ROOT",
    "SWIFTLY_HOME_DIR",
    // What manages toolchains, packages and containers.
    "ASDF_DATA_DIR",
    "ASDF_DIR",
    "DOCKER_HOST",
    "HOMEBREW_CELLAR",
    "HOMEBREW_PREFIX",
    "HOMEBREW_REPOSITORY",
    "MISE_DATA_DIR",
    "NIX_PATH",
    "NIX_PROFILES",
];

/// Prefixes of inherited variables: language and the user's folders.
const PASSED_BEGINNINGS: [&str; 2] = ["LC_", "XDG_"];

/// Proxy addresses, inherited unless they contain a password.
const PASSED_ADDRESSES: [&str; 4] = ["all_proxy", "http_proxy", "https_proxy", "no_proxy"];

/// Our own keys, which no command ever inherits.
const OWN_KEYS: [&str; 3] = ["ANTHROPIC_API_KEY", "OPENAI_API_KEY", "TRIMTAB_PROXY_TOKEN"];

/// The variables that a command inherits: a fixed list plus names given by the user, but never our
/// own keys.
///
/// ```
/// use trimtab_agent::tools::CommandEnvironment;
///
/// let passed = CommandEnvironment::new(["GITHUB_TOKEN"]).unwrap();
/// assert!(passed.has("PATH", "/usr/bin") && passed.has("GITHUB_TOKEN", "t"));
/// assert!(!passed.has("AWS_SECRET_ACCESS_KEY", "s"));
/// assert!(CommandEnvironment::new(["OPENAI_API_KEY"]).is_err());
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommandEnvironment {
    named: Vec<String>,
}

impl CommandEnvironment {
    /// The fixed list plus the variables in `named`. The error says which name is invalid and why.
    pub fn new<N: Into<String>>(named: impl IntoIterator<Item = N>) -> Result<Self, String> {
        let named: Vec<String> = named.into_iter().map(Into::into).collect();
        for name in &named {
            if OWN_KEYS.contains(&name.as_str()) {
                return Err(format!(
                    "{name} is one of our own keys, which no command may inherit"
                ));
            }
            if name.is_empty() || name.contains(['=', '\0']) {
                return Err(format!("{name:?} is not the name of a variable"));
            }
        }
        Ok(Self { named })
    }

    /// True if a variable with this name and value is inherited.
    pub fn has(&self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> bool {
        let Some(name) = name.as_ref().to_str() else {
            return false;
        };
        if self.named.iter().any(|named| named == name) || PASSED.contains(&name) {
            return true;
        }
        if PASSED_BEGINNINGS
            .iter()
            .any(|begins| name.starts_with(begins))
        {
            return true;
        }
        let is_address = PASSED_ADDRESSES.contains(&name.to_ascii_lowercase().as_str());
        // An `@` separates the password from the host.
        is_address && !value.as_ref().to_string_lossy().contains('@')
    }

    /// The variables of this process that commands inherit.
    pub(super) fn variables(&self) -> impl Iterator<Item = (OsString, OsString)> {
        std::env::vars_os().filter(|(name, value)| self.has(name, value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_listed_and_named_variables_are_passed() {
        let environment = CommandEnvironment::new(["MY_SETTING"]).unwrap();
        for name in [
            "PATH",
            "LC_ALL",
            "XDG_CACHE_HOME",
            "CARGO_HOME",
            "MY_SETTING",
        ] {
            assert!(environment.has(name, "v"), "{name}");
        }
        for name in [
            "AWS_SECRET_ACCESS_KEY",
            "GITHUB_TOKEN",
            "SSH_AUTH_SOCK",
            "OPENAI_API_KEY",
            "TRIMTAB_PROXY_TOKEN",
            "LD_PRELOAD",
            "PATHS",
        ] {
            assert!(!environment.has(name, "v"), "{name}");
        }
    }

    #[test]
    fn proxy_addresses_with_a_password_are_not_inherited() {
        let environment = CommandEnvironment::default();
        assert!(environment.has("HTTPS_PROXY", "http://proxy:3128"));
        assert!(environment.has("no_proxy", "localhost"));
        assert!(!environment.has("https_proxy", "http://user:secret@proxy:3128"));
    }

    #[test]
    fn own_keys_cannot_be_named() {
        for name in OWN_KEYS {
            let refused = CommandEnvironment::new([name]).unwrap_err();
            assert!(refused.contains(name), "{refused}");
        }
        assert!(CommandEnvironment::new(["A=b"]).is_err());
        assert!(CommandEnvironment::new([""]).is_err());
    }
}

//! Opens an object store by its URL.

use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use object_store::aws::{AmazonS3, AmazonS3Builder, AmazonS3ConfigKey};
use object_store::azure::{MicrosoftAzure, MicrosoftAzureBuilder};
use object_store::gcp::{GoogleCloudStorage, GoogleCloudStorageBuilder};
use object_store::local::LocalFileSystem;
use object_store::path::Path as ObjectPath;
use object_store::prefix::PrefixStore;
use object_store::{ClientOptions, ObjectStore, ObjectStoreScheme, RetryConfig};

use super::tls;
use crate::{Error, Result};

/// How long one attempt may take.
const ATTEMPT: Duration = Duration::from_secs(5);
/// How long attempts are repeated. A request passes unmanaged after that.
const RETRYING: Duration = Duration::from_secs(5);
/// How often a failed attempt is repeated.
const RETRIES: usize = 3;

/// Opens the object store at `url`. Credentials, endpoints and regions come from the environment
/// variables that the tools of each provider use, or from the query of the URL, for example
/// `s3://bucket/prefix?endpoint=http://127.0.0.1:9000`.
pub(super) fn open(url: &str) -> Result<Arc<dyn ObjectStore>> {
    tls::install_provider();
    let mut parsed = url::Url::parse(url).map_err(bad_url)?;
    let settings: Vec<(String, String)> = parsed.query_pairs().into_owned().collect();
    parsed.set_query(None);
    let (scheme, prefix) = ObjectStoreScheme::parse(&parsed).map_err(bad_url)?;
    let store: Box<dyn ObjectStore> = match scheme {
        ObjectStoreScheme::AmazonS3 => Box::new(open_s3(&parsed, settings)?),
        ObjectStoreScheme::GoogleCloudStorage => Box::new(open_google(&parsed, settings)?),
        ObjectStoreScheme::MicrosoftAzure => Box::new(open_azure(&parsed, settings)?),
        ObjectStoreScheme::Local => return open_folder(&parsed),
        _ => return Err(bad_url(format!("'{}' is not supported", parsed.scheme()))),
    };
    Ok(Arc::new(PrefixStore::new(store, prefix)))
}

fn open_s3(url: &url::Url, settings: Vec<(String, String)>) -> Result<AmazonS3> {
    let mut builder = AmazonS3Builder::from_env();
    for (name, value) in settings {
        builder = builder.with_config(setting_key(&name)?, value);
    }
    let endpoint = builder.get_config_value(&AmazonS3ConfigKey::Endpoint);
    let is_plain = endpoint.is_some_and(|endpoint| endpoint.starts_with("http://"));
    builder
        .with_url(url.as_str())
        .with_retry(retries())
        .with_client_options(client().with_allow_http(is_plain))
        .build()
        .map_err(bad_url)
}

fn open_google(url: &url::Url, settings: Vec<(String, String)>) -> Result<GoogleCloudStorage> {
    let mut builder = GoogleCloudStorageBuilder::from_env();
    for (name, value) in settings {
        builder = builder.with_config(setting_key(&name)?, value);
    }
    builder
        .with_url(url.as_str())
        .with_retry(retries())
        .with_client_options(client())
        .build()
        .map_err(bad_url)
}

fn open_azure(url: &url::Url, settings: Vec<(String, String)>) -> Result<MicrosoftAzure> {
    let mut builder = MicrosoftAzureBuilder::from_env();
    for (name, value) in settings {
        builder = builder.with_config(setting_key(&name)?, value);
    }
    builder
        .with_url(url.as_str())
        .with_retry(retries())
        .with_client_options(client())
        .build()
        .map_err(bad_url)
}

fn setting_key<K: FromStr>(name: &str) -> Result<K> {
    let unknown = |_| bad_url(format!("'{name}' is not a setting of this object store"));
    name.parse().map_err(unknown)
}

#[expect(clippy::needless_pass_by_value, reason = "a function for map_err")]
fn bad_url(why: impl ToString) -> Error {
    Error::BadUrl {
        what: "the object store",
        why: why.to_string(),
    }
}

/// A folder as object store, for example on a file system that all machines share.
fn open_folder(url: &url::Url) -> Result<Arc<dyn ObjectStore>> {
    let path = url
        .to_file_path()
        .map_err(|()| bad_url("a file URL needs an absolute path"))?;
    std::fs::create_dir_all(&path).map_err(|error| Error::io("create", &path, error))?;
    let folder = LocalFileSystem::new_with_prefix(&path).map_err(Error::database)?;
    Ok(Arc::new(folder.with_fsync(true)))
}

fn client() -> ClientOptions {
    ClientOptions::new()
        .with_timeout(ATTEMPT)
        .with_connect_timeout(ATTEMPT)
}

fn retries() -> RetryConfig {
    RetryConfig {
        max_retries: RETRIES,
        retry_timeout: RETRYING,
        ..RetryConfig::default()
    }
}

/// The path of the object with a body. Two levels, because some stores list a folder slowly.
pub(super) fn object_path(name: &str) -> ObjectPath {
    let folder = name.get(..2).unwrap_or("00");
    ObjectPath::from_iter([FOLDER, folder, name])
}

/// The folder of all objects.
pub(super) const FOLDER: &str = "outputs";

/// Converts an error of the object store into the kinds that callers handle.
pub(super) fn from_object_store(error: object_store::Error) -> Error {
    match error {
        object_store::Error::NotFound { .. } => Error::damaged("an output"),
        object_store::Error::PermissionDenied { .. } => Error::ReadOnly,
        other => Error::Unreachable {
            what: "the object store".to_owned(),
            why: other
                .to_string()
                .lines()
                .next()
                .unwrap_or_default()
                .to_owned(),
        },
    }
}

//! Opens an object store by its URL.

use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::azure::MicrosoftAzureBuilder;
use object_store::gcp::GoogleCloudStorageBuilder;
use object_store::local::LocalFileSystem;
use object_store::path::Path as ObjectPath;
use object_store::prefix::PrefixStore;
use object_store::{ClientOptions, ObjectStore, ObjectStoreScheme, RetryConfig};

use super::tls;
use crate::{Error, Result, ServerVariables};

/// How long one attempt may take.
const ATTEMPT: Duration = Duration::from_secs(5);
/// How long attempts are repeated. After that, the proxy passes the request through unmanaged.
const RETRYING: Duration = Duration::from_secs(5);
/// How often a failed attempt is repeated.
const RETRIES: usize = 3;

/// Configures a builder of an object store by the variables with a prefix, and then by the query of
/// its URL. The builders have the same methods, but no common trait.
macro_rules! configured {
    ($builder:expr, $prefix:literal, $from:expr) => {{
        let (place, variables, settings) = $from;
        let mut builder = $builder;
        for (name, value) in variables.iter() {
            let name = name.to_ascii_lowercase();
            // Other tools of the provider have variables that mean nothing here.
            if let (true, Ok(key)) = (
                name.starts_with(&$prefix.to_ascii_lowercase()),
                name.parse(),
            ) {
                builder = builder.with_config(key, value);
            }
        }
        for (name, value) in settings {
            builder = builder.with_config(setting_key(&name)?, value);
        }
        builder
            .with_url(place.as_str())
            .with_retry(retries())
            .with_client_options(client())
    }};
}

/// Opens the object store at `url`. Credentials, endpoints and regions come from the variables that
/// the tools of each provider use, or from the query of the URL, for example
/// `s3://bucket/prefix?endpoint=http://127.0.0.1:9000`.
pub(super) fn open(url: &str, variables: &ServerVariables) -> Result<Arc<dyn ObjectStore>> {
    tls::install_provider();
    let mut place = url::Url::parse(url).map_err(bad_url)?;
    let settings: Vec<(String, String)> = place.query_pairs().into_owned().collect();
    place.set_query(None);
    let (scheme, prefix) = ObjectStoreScheme::parse(&place).map_err(bad_url)?;
    let from = (&place, variables, settings);
    let store: Box<dyn ObjectStore> = match scheme {
        ObjectStoreScheme::AmazonS3 => {
            let builder = configured!(AmazonS3Builder::from_env(), "aws_", from);
            let endpoint = builder.get_config_value(&AmazonS3ConfigKey::Endpoint);
            // Plain HTTP only if the user names such an endpoint, for example a server on this
            // machine.
            let is_plain = endpoint.is_some_and(|endpoint| endpoint.starts_with("http://"));
            let client = client().with_allow_http(is_plain);
            Box::new(
                builder
                    .with_client_options(client)
                    .build()
                    .map_err(bad_url)?,
            )
        }
        ObjectStoreScheme::GoogleCloudStorage => {
            let builder = configured!(GoogleCloudStorageBuilder::from_env(), "google_", from);
            Box::new(builder.build().map_err(bad_url)?)
        }
        ObjectStoreScheme::MicrosoftAzure => {
            let builder = configured!(MicrosoftAzureBuilder::from_env(), "azure_", from);
            Box::new(builder.build().map_err(bad_url)?)
        }
        ObjectStoreScheme::Local => return open_folder(&place),
        _ => return Err(bad_url(format!("'{}' is not supported", place.scheme()))),
    };
    Ok(Arc::new(PrefixStore::new(store, prefix)))
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
    // A row may name the file as soon as it is written, so it must be durable.
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

/// Texts in the errors of object stores whose bucket or container is missing, not only an object.
const NO_BUCKET: [&str; 3] = ["NoSuchBucket", "ContainerNotFound", "bucket does not exist"];

/// True if only the object is missing, and not its bucket or container.
pub(super) fn is_missing_object(error: &object_store::Error) -> bool {
    let text = error.to_string();
    matches!(error, object_store::Error::NotFound { .. })
        && !NO_BUCKET.iter().any(|known| text.contains(known))
}

/// Converts an error of a read into the kinds that callers handle.
pub(super) fn from_object_store(error: &object_store::Error) -> Error {
    if is_missing_object(error) {
        return Error::damaged("an output");
    }
    from_write(error)
}

/// The same for a write. It needs no object, so only the bucket can be missing.
pub(super) fn from_write(error: &object_store::Error) -> Error {
    let why = if matches!(error, object_store::Error::NotFound { .. }) {
        "the bucket or container does not exist".to_owned()
    } else {
        let text = error.to_string();
        text.lines().next().unwrap_or_default().to_owned()
    };
    Error::Unreachable {
        what: "the object store".to_owned(),
        why,
    }
}

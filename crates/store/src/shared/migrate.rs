//! The tables: made and brought up to date by whichever process comes first.

use deadpool_postgres::Object;

use super::connect::from_postgres;
use crate::{Error, Result};

/// Each migration leads to the next version. They are never changed, only added to.
const MIGRATIONS: &[&str] = &[include_str!("migrations/0001_tables.sql")];
/// Held while the schema is looked at and changed, so that processes which start at the same
/// moment take turns.
const LOCK: i64 = 0x7472_696d;

/// Brings the schema up to date. A schema of a newer version is left alone.
pub(super) async fn migrate(mut connection: Object, secret: [u8; 32]) -> Result<()> {
    let known = i64::try_from(MIGRATIONS.len()).unwrap_or(i64::MAX);
    let transaction = connection.transaction().await.map_err(from_postgres)?;
    let lock = format!("SELECT pg_advisory_xact_lock({LOCK})");
    transaction
        .batch_execute(&lock)
        .await
        .map_err(from_postgres)?;
    let versions = "CREATE TABLE IF NOT EXISTS schema_version (version bigint NOT NULL)";
    transaction
        .batch_execute(versions)
        .await
        .map_err(from_postgres)?;
    let newest = "SELECT coalesce(max(version), 0) FROM schema_version";
    let newest = transaction
        .query_one(newest, &[])
        .await
        .map_err(from_postgres)?;
    let found: i64 = newest.get(0);
    if found > known {
        return Err(Error::NewerFormat { found, known });
    }
    for (version, migration) in (1_i64..).zip(MIGRATIONS) {
        if version <= found {
            continue;
        }
        transaction
            .batch_execute(migration)
            .await
            .map_err(from_postgres)?;
        let insert = "INSERT INTO schema_version VALUES ($1)";
        transaction
            .execute(insert, &[&version])
            .await
            .map_err(from_postgres)?;
    }
    let insert = "INSERT INTO store (secret) VALUES ($1) ON CONFLICT DO NOTHING";
    let secret = secret.as_slice();
    transaction
        .execute(insert, &[&secret])
        .await
        .map_err(from_postgres)?;
    transaction.commit().await.map_err(from_postgres)
}

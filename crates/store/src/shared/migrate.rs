//! Creates the tables, and upgrades them.

use deadpool_postgres::Object;

use super::database::from_postgres;
use crate::{Error, Result};

/// Each migration leads to the next version. Released migrations never change.
const MIGRATIONS: &[&str] = &[include_str!("migrations/0001_tables.sql")];
/// The advisory lock that is held while the schema is read and changed, so that processes which
/// start at the same time take turns.
const LOCK: i64 = 0x7472_696d_7461_6231;
/// The table of versions. It exists before every migration.
const VERSIONS: &str = "CREATE SCHEMA IF NOT EXISTS trimtab;
    CREATE TABLE IF NOT EXISTS trimtab.schema_version (version bigint PRIMARY KEY)";

/// The version of the schema; 0 if there is none.
async fn version(connection: &Object) -> Result<i64, tokio_postgres::Error> {
    let exists = "SELECT to_regclass('trimtab.schema_version') IS NOT NULL";
    if !connection.query_one(exists, &[]).await?.get::<_, bool>(0) {
        return Ok(0);
    }
    let newest = "SELECT coalesce(max(version), 0) FROM trimtab.schema_version";
    Ok(connection.query_one(newest, &[]).await?.get(0))
}

/// Fails if the user of the connection may not create a schema.
pub(super) async fn may_create(connection: Object) -> Result<()> {
    let select = "SELECT has_database_privilege(current_database(), 'CREATE'), current_user::text,
            current_database()::text";
    let row = connection.query_one(select, &[]).await;
    let row = row.map_err(from_postgres)?;
    if row.get(0) {
        return Ok(());
    }
    let (user, database): (String, String) = (row.get(1), row.get(2));
    let why = format!("user '{user}' may not create tables in database '{database}'");
    Err(Error::Denied(why))
}

/// Upgrades the schema, and creates it unless `must_exist`. A schema of a newer version is left
/// unchanged.
pub(super) async fn migrate(
    mut connection: Object,
    secret: [u8; 32],
    must_exist: bool,
) -> Result<()> {
    let known = i64::try_from(MIGRATIONS.len()).unwrap_or(i64::MAX);
    let found = version(&connection).await.map_err(from_postgres)?;
    if found > known {
        return Err(Error::NewerFormat { found, known });
    }
    if found == known {
        return Ok(());
    }
    if found == 0 && must_exist {
        return Err(Error::NoTables);
    }
    let transaction = connection.transaction().await.map_err(from_postgres)?;
    // Another process may migrate for longer than the usual lock timeout.
    let lock = format!("SET LOCAL lock_timeout = 0; SELECT pg_advisory_xact_lock({LOCK})");
    let lock = transaction.batch_execute(&lock).await;
    lock.map_err(from_postgres)?;
    let versions = transaction.batch_execute(VERSIONS).await;
    versions.map_err(from_postgres)?;
    // Another process may have upgraded the schema while this one waited for the lock.
    let newest = "SELECT coalesce(max(version), 0) FROM trimtab.schema_version";
    let newest = transaction.query_one(newest, &[]).await;
    let found: i64 = newest.map_err(from_postgres)?.get(0);
    for (version, migration) in (1_i64..).zip(MIGRATIONS) {
        if version <= found {
            continue;
        }
        let migrated = transaction.batch_execute(migration).await;
        migrated.map_err(from_postgres)?;
        let insert = "INSERT INTO trimtab.schema_version VALUES ($1)";
        let inserted = transaction.execute(insert, &[&version]).await;
        inserted.map_err(from_postgres)?;
    }
    // The first process creates the secret. It must never change after that.
    let insert = "INSERT INTO trimtab.store (secret) VALUES ($1) ON CONFLICT DO NOTHING";
    let inserted = transaction.execute(insert, &[&secret.as_slice()]).await;
    inserted.map_err(from_postgres)?;
    transaction.commit().await.map_err(from_postgres)
}

//! temporary
use bytes::Bytes;
use http::Response;
use trimtab_model::Dialect;

use crate::asked::Asked;
use crate::body::{Body, full};

pub(crate) async fn manage(asked: Asked, dialect: Dialect, body: Bytes) -> Response<Body> {
    crate::service::pass(asked, dialect, None, full(body)).await
}

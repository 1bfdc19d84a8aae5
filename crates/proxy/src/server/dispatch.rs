//! The path of a request, from its connection to its record. Start reading here. If one of our
//! steps fails, the request goes to its upstream unchanged.

use std::convert::Infallible;
use std::sync::Arc;

use http::{Request, Response, StatusCode};
use hyper::body::Incoming;

use crate::endpoints;
use crate::exchange::Exchange;
use crate::request::context::RequestContext;
use crate::request::shared::SharedState;
use crate::server::arrival::{AdmittedRequest, ArrivedRequest};
use crate::server::model_call::{self, ModelCall};
use crate::server::websocket;
use crate::transport::body::ProxyBody;

/// Answers a request. Its connection is among its extensions.
pub(crate) async fn handle(
    shared: Arc<SharedState>,
    request: Request<Incoming>,
) -> Result<Response<ProxyBody>, Infallible> {
    // Accept: take the settings that hold now, and open a record.
    let arrival = ArrivedRequest::accept(shared, request);
    // Authenticate: check host, token, origin and limits, and find out whose it is.
    let AdmittedRequest {
        context,
        body,
        websocket,
    } = match arrival.authenticate() {
        Ok(admitted) => admitted,
        Err(refusal) => return Ok(*refusal),
    };
    Ok(match websocket {
        // In boxes, because hyper moves this future, and most calls need none of these.
        _ if context.is_for_us() => Box::pin(endpoints::answer(context, body)).await,
        _ if !context.path.starts_with('/') => {
            context.refuse(StatusCode::BAD_REQUEST, "the request names no path")
        }
        Some(client) => Box::pin(websocket::answer(context, client)).await,
        None => Box::pin(forward(context, body)).await,
    })
}

/// Sends a request to its upstream, with a managed window if possible.
async fn forward(mut context: RequestContext, body: ProxyBody) -> Response<ProxyBody> {
    // Recognise: find out whether it calls a model, and in which dialect.
    let call = match ModelCall::recognise(&context) {
        Ok(call) => call,
        Err((reason, spoken)) => return context.forward_because(reason, spoken, body).await,
    };
    // Read the body, within the limits of size and memory.
    let read = match model_call::read_body(&mut context, &call, body).await {
        Ok(read) => read,
        Err(None) => return context.broken_body(),
        Err(Some((reason, rest))) => {
            return context
                .forward_because(reason, call.dialect.into(), rest)
                .await;
        }
    };
    // Plan (see `request::plan`). The original stays for a fallback; the clone copies no text.
    let received = read.received.clone();
    let (managed, planned) = match model_call::plan(&mut context, &call, read).await {
        Ok(planned) => planned,
        Err(unmanaged) => {
            let body = context.continued_body().unwrap_or(received);
            return context.forward_call(call.dialect, unmanaged, body).await;
        }
    };
    // Send it. If the model says that it is too long, make it smaller and send it again.
    let mut exchange = Exchange::new(managed, planned, received);
    let answer = match exchange.run(&mut context).await {
        Ok(answer) => answer,
        Err(failed) => return context.unreachable(&failed),
    };
    // Watch the answer, serve calls of our tools, learn from its usage, and write the record.
    Box::pin(exchange.deliver(context, answer)).await
}

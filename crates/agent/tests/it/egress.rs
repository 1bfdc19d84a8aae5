//! Models behind an egress proxy.

use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpListener;
use trimtab::network::{Network, OutboundNetwork};
use trimtab_agent::model::{
    Endpoint, HttpModel, ModelClient, ModelError, ModelRequest, RetryPolicy, Timeouts,
};
use trimtab_model::{Dialect, Message};

/// A proxy that answers one request with `answer`, and gives the lines it was sent.
async fn proxy(answer: &'static str) -> (String, tokio::task::JoinHandle<Vec<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let heard = tokio::spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        let mut stream = BufReader::new(stream);
        let mut heard = Vec::new();
        loop {
            let mut line = String::new();
            stream.read_line(&mut line).await.unwrap();
            if line.trim().is_empty() {
                break;
            }
            heard.push(line.trim().to_lowercase());
        }
        stream.write_all(answer.as_bytes()).await.unwrap();
        heard
    });
    (address, heard)
}

async fn ask(base: &str, proxy: &str) -> Result<String, ModelError> {
    let network = Network {
        proxy: Some(format!("http://me:secret@{proxy}")),
        ..Network::default()
    };
    let endpoint = Endpoint::new(base).unwrap();
    let http = HttpModel::new(Dialect::Chat, endpoint)
        .retries(RetryPolicy::NONE)
        .network(OutboundNetwork::new(&network).unwrap());
    let messages = vec![Arc::new(Message::user("hello"))];
    let answer = ModelClient::new(http)
        .call(ModelRequest::new("m", messages))
        .answer();
    Ok(answer.await?.message.text().into_owned())
}

#[tokio::test]
async fn http_server_is_reached_through_the_egress_proxy() {
    let answer = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n\r\n\
                  {\"choices\":[{\"message\":{\"role\":\"assistant\",\"content\":\"here\"},\
                  \"finish_reason\":\"stop\"}]}";
    let (address, heard) = proxy(answer).await;
    let said = ask("http://model.invalid:81/v1", &address).await.unwrap();
    assert_eq!(said, "here");
    let heard = heard.await.unwrap();
    let first = "post http://model.invalid:81/v1/chat/completions http/1.1";
    assert_eq!(heard[0], first);
    assert!(
        heard
            .iter()
            .any(|line| line.starts_with("proxy-authorization: basic "))
    );
}

#[tokio::test]
async fn https_server_is_reached_through_a_tunnel() {
    let refused = "HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\n\r\n";
    let (address, heard) = proxy(refused).await;
    let error = ask("https://model.invalid/v1", &address).await.unwrap_err();
    let said = error.to_string();
    assert!(
        said.contains(&format!("the egress proxy {address}")),
        "{said}"
    );
    assert!(!said.contains("secret"), "{said}");
    let heard = heard.await.unwrap();
    assert_eq!(heard[0], "connect model.invalid:443 http/1.1");
    assert!(
        heard
            .iter()
            .any(|line| line.starts_with("proxy-authorization: basic "))
    );
}

#[tokio::test]
async fn silent_egress_proxy_times_out() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let endpoint = Endpoint::new(&format!("https://{address}/v1")).unwrap();
    let timeouts = Timeouts {
        connect: Duration::from_millis(50),
        ..Timeouts::default()
    };
    let http = HttpModel::new(Dialect::Chat, endpoint)
        .retries(RetryPolicy::NONE)
        .timeouts(timeouts);
    let messages = vec![Arc::new(Message::user("hello"))];
    let asked = ModelClient::new(http)
        .call(ModelRequest::new("m", messages))
        .answer();
    let error = asked.await.unwrap_err();
    assert!(matches!(error, ModelError::Unreachable { .. }), "{error}");
    assert!(
        error.to_string().contains("no connection within"),
        "{error}"
    );
}

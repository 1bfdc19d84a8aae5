//! An S3-compatible server.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::Command;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use super::{ServerProcess, free_port, run, started, temporary_folder};

/// An S3-compatible server.
pub struct ObjectServer {
    process: ServerProcess,
    buckets: AtomicU32,
}

impl ObjectServer {
    /// The server of this test process. None if it is not installed.
    pub fn shared() -> Option<&'static Self> {
        static SERVER: OnceLock<Option<ObjectServer>> = OnceLock::new();
        let start = || started("moto_server (S3)", Self::start());
        SERVER.get_or_init(start).as_ref()
    }

    fn start() -> io::Result<Self> {
        let folder = temporary_folder("objects")?;
        let port = free_port()?;
        let number = port.to_string();
        let command = ["moto_server", "-H", "127.0.0.1", "-p", &number];
        run(Command::new("moto_server").arg("--help"))?;
        Ok(Self {
            process: ServerProcess::start(&folder, port, &command)?,
            buckets: AtomicU32::new(0),
        })
    }

    /// The address that it listens on.
    pub fn address(&self) -> SocketAddr {
        self.process.address
    }

    /// Creates a bucket and returns its name.
    pub fn new_bucket(&self) -> io::Result<String> {
        let name = format!("bucket-{}", self.buckets.fetch_add(1, Ordering::Relaxed));
        let answer = self.request("PUT", &format!("/{name}"))?;
        if answer.contains(" 200 ") {
            Ok(name)
        } else {
            Err(io::Error::other(answer))
        }
    }

    /// The URL of a bucket for clients that connect to `address`.
    pub fn url(bucket: &str, address: SocketAddr) -> String {
        format!(
            "s3://{bucket}/trimtab?endpoint=http://{address}&region=us-east-1\
             &access_key_id=test&secret_access_key=test"
        )
    }

    /// The number of outputs in a bucket.
    pub fn object_count(&self, bucket: &str) -> io::Result<usize> {
        let prefix = "trimtab/outputs/";
        let listed = self.request("GET", &format!("/{bucket}?list-type=2&prefix={prefix}"))?;
        Ok(listed.matches("<Key>").count())
    }

    /// The number of uploads to a bucket that are neither completed nor aborted.
    pub fn open_upload_count(&self, bucket: &str) -> io::Result<usize> {
        let listed = self.request("GET", &format!("/{bucket}?uploads"))?;
        Ok(listed.matches("<Upload>").count())
    }

    fn request(&self, method: &str, path: &str) -> io::Result<String> {
        let mut stream = TcpStream::connect(self.address())?;
        let signed = "Authorization: AWS4-HMAC-SHA256 Credential=test/20300101/us-east-1/s3/\
             aws4_request, SignedHeaders=host, Signature=0";
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nHost: {}\r\n{signed}\r\nContent-Length: 0\r\n\
             Connection: close\r\n\r\n",
            self.address()
        )?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok(answer)
    }
}

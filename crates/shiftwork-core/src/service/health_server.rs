//! Liveness and readiness for orchestrators, over HTTP: `/healthz` and `/readyz`.
//!
//! The server has a thread and a runtime of its own, so that it can still say that the pool's is blocked.

use std::convert::Infallible;
use std::net::SocketAddr;

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::error::Error;
use crate::pool::HealthProbe;

/// Answers probes until `stop` fires.
///
/// # Errors
///
/// If the address can't be listened on.
pub(crate) fn serve(
    address: SocketAddr,
    probe: HealthProbe,
    stop: CancellationToken,
) -> Result<SocketAddr, Error> {
    let failed = |error: std::io::Error| {
        Error::config(format!("probes can't be answered on {address}: {error}; name a free address"))
    };
    let listener = std::net::TcpListener::bind(address).map_err(failed)?;
    listener.set_nonblocking(true).map_err(failed)?;
    let bound = listener.local_addr().map_err(failed)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
    std::thread::Builder::new()
        .name("shiftwork-health".to_owned())
        .spawn(move || {
            runtime.block_on(async {
                let Ok(listener) = TcpListener::from_std(listener) else { return };
                tokio::select! {
                    () = accept(listener, probe) => {}
                    () = stop.cancelled() => {}
                }
            });
        })
        .map_err(failed)?;
    Ok(bound)
}

async fn accept(listener: TcpListener, probe: HealthProbe) {
    loop {
        // An error here is that of one connection, or passes.
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(std::time::Duration::from_millis(100)).await;
            continue;
        };
        let probe = probe.clone();
        tokio::spawn(async move {
            let service = service_fn(move |request| answer(request, probe.clone()));
            // Who asks and goes away before the answer has lost nothing.
            let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
        });
    }
}

async fn answer(request: Request<Incoming>, probe: HealthProbe) -> Result<Response<Full<Bytes>>, Infallible> {
    let (status, text) = match (request.method(), request.uri().path()) {
        (&Method::GET | &Method::HEAD, path @ ("/healthz" | "/readyz")) => {
            let health = probe.check().await;
            let good = if path == "/healthz" { health.live } else { health.ready };
            let status = if good { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
            let text = if health.problems.is_empty() { "ok".to_owned() } else { health.problems.join("\n") };
            (status, text + "\n")
        }
        (_, "/healthz" | "/readyz") => (StatusCode::METHOD_NOT_ALLOWED, "only GET and HEAD\n".to_owned()),
        _ => (StatusCode::NOT_FOUND, "there are /healthz and /readyz\n".to_owned()),
    };
    let mut response = Response::new(Full::new(Bytes::from(text)));
    *response.status_mut() = status;
    Ok(response)
}

//! Opening a store: the URL, the options, and what is checked before the first job.

use std::time::Duration;

use redis::{ConnectionAddr, ConnectionInfo, IntoConnectionInfo, ProtocolVersion};
use shiftwork_core::Error;

use crate::connection::{Connection, Target};
use crate::store::RedisStore;

/// Options for a connection; see [`RedisStore::builder`].
#[derive(Debug, Clone)]
#[must_use = "nothing is connected before `connect`"]
pub struct RedisStoreBuilder {
    url: Secret,
    namespace: String,
    connect_timeout: Duration,
    response_timeout: Duration,
    ca_certificate: Option<Vec<u8>>,
}

/// A text that no log shows.
#[derive(Clone)]
struct Secret(String);

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("(not shown)")
    }
}

impl RedisStoreBuilder {
    pub(crate) fn new(url: &str) -> Self {
        Self {
            url: Secret(url.to_owned()),
            namespace: "work".to_owned(),
            connect_timeout: Duration::from_secs(5),
            response_timeout: Duration::from_secs(10),
            ca_certificate: None,
        }
    }

    /// The prefix of all keys (default `work`, as in the Go library's tools). On Redis Cluster it needs a hash tag:
    /// `{work}`.
    pub fn namespace(mut self, namespace: impl Into<String>) -> Self {
        self.namespace = namespace.into();
        self
    }

    /// How long opening a connection may take (default 5 s).
    pub fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.connect_timeout = timeout;
        self
    }

    /// How long the server may take to answer a call (default 10 s). Then the connection is given up, and what the call
    /// did is not known.
    pub fn response_timeout(mut self, timeout: Duration) -> Self {
        self.response_timeout = timeout;
        self
    }

    /// A certificate authority in PEM form to trust for `rediss://` besides the public ones.
    pub fn ca_certificate(mut self, pem: impl Into<Vec<u8>>) -> Self {
        self.ca_certificate = Some(pem.into());
        self
    }

    /// Connects, and checks that the server is one that can be used.
    ///
    /// # Errors
    ///
    /// [`Error::is_config`] if the URL is wrong or the server too old; [`Error::is_unavailable`] if it can't be reached.
    pub async fn connect(self) -> Result<RedisStore, Error> {
        let info = parse(&self.url.0)?;
        let place = place_of(&info);
        let resp3 = info.redis_settings().clone().set_protocol(ProtocolVersion::RESP3);
        let target = Target {
            resp3_client: self.client(info.clone().set_redis_settings(resp3), &place)?,
            client: self.client(info, &place)?,
            place,
            connect_timeout: self.connect_timeout,
            response_timeout: self.response_timeout,
        };
        let connection = Connection::new(target);
        check_server(&connection, &self.namespace).await?;
        Ok(RedisStore::new(connection, &self.namespace))
    }

    fn client(&self, info: ConnectionInfo, place: &str) -> Result<redis::Client, Error> {
        let is_tls = matches!(info.addr(), ConnectionAddr::TcpTls { .. });
        #[cfg(feature = "tls")]
        if is_tls {
            // Whatever provider the program has chosen stays.
            let _ = rustls::crypto::ring::default_provider().install_default();
            if let Some(pem) = &self.ca_certificate {
                let certificates = redis::TlsCertificates { client_tls: None, root_cert: Some(pem.clone()) };
                return redis::Client::build_with_tls(info, certificates).map_err(|error| {
                    Error::config(format!("the CA certificate for {place} can't be used: {error}"))
                });
            }
        }
        #[cfg(not(feature = "tls"))]
        if is_tls {
            return Err(Error::config(format!("{place} wants TLS; build with the feature `tls`")));
        }
        if !is_tls && self.ca_certificate.is_some() {
            return Err(Error::config(format!(
                "a CA certificate is given, but {place} is not TLS; write rediss://"
            )));
        }
        redis::Client::open(info).map_err(|error| Error::config(format!("{place} can't be used: {error}")))
    }
}

/// The URL's parts. An error never shows the URL: it may hold a password.
fn parse(url: &str) -> Result<ConnectionInfo, Error> {
    let scheme = url.split_once("://").map(|(scheme, _)| scheme).unwrap_or_default();
    if !matches!(scheme, "redis" | "rediss" | "valkey" | "valkeys" | "unix" | "redis+unix" | "valkey+unix") {
        return Err(Error::config(
            "the Redis URL has an unknown scheme; write redis://host:6379/0, rediss://host:6379/0 for TLS, or \
             unix:///path/to/redis.sock",
        ));
    }
    if matches!(scheme, "rediss" | "valkeys") && !cfg!(feature = "tls") {
        return Err(Error::config(format!("{scheme}:// wants TLS; build with the feature `tls`")));
    }
    url.into_connection_info().map_err(|error| {
        let reason = error.detail().map_or_else(|| error.to_string(), str::to_owned);
        let reason = if reason.contains('@') || url.contains(&reason) { "it can't be read".to_owned() } else { reason };
        Error::config(format!(
            "the Redis URL is wrong ({reason}); write redis://user:password@host:6379/0, with special characters of the \
             password percent-encoded"
        ))
    })
}

/// The server for people to read.
fn place_of(info: &ConnectionInfo) -> String {
    let db = info.redis_settings().db();
    match info.addr() {
        ConnectionAddr::Tcp(host, port) => format!("redis://{host}:{port}/{db}"),
        ConnectionAddr::TcpTls { host, port, .. } => format!("rediss://{host}:{port}/{db}"),
        ConnectionAddr::Unix(path) => format!("unix://{}?db={db}", path.display()),
        _ => "the Redis server".to_owned(),
    }
}

/// Refuses servers that can't do what is needed, and warns of settings that lose jobs.
async fn check_server(connection: &Connection, namespace: &str) -> Result<(), Error> {
    let place = &connection.target().place;
    let info: String = connection.query(redis::cmd("INFO").arg("server")).await?;
    let field =
        |name: &str| info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim);
    let (name, version, least) = match field("valkey_version") {
        Some(version) => ("Valkey", version, (7, 2)),
        None => ("Redis", field("redis_version").unwrap_or("0.0"), (6, 2)),
    };
    let mut numbers = version.split('.').map(|number| number.parse::<u32>().unwrap_or(0));
    let found = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    if found < least {
        return Err(Error::config(format!(
            "{place} runs {name} {version}; Shiftwork needs {name} {}.{} or newer",
            least.0, least.1
        )));
    }
    let has_hash_tag =
        namespace.split_once('{').is_some_and(|(_, rest)| rest.find('}').is_some_and(|at| at > 0));
    if field("redis_mode") == Some("cluster") && !has_hash_tag {
        return Err(Error::config(format!(
            "namespace {namespace:?} has no hash tag; on Redis Cluster write \"{{{namespace}}}\""
        )));
    }
    // Not everybody may ask for the configuration.
    let policy: Result<Vec<String>, _> =
        connection.try_query(redis::cmd("CONFIG").arg("GET").arg("maxmemory-policy")).await;
    if let Some(policy) = policy.ok().and_then(|reply| reply.into_iter().nth(1))
        && policy != "noeviction"
    {
        tracing::warn!(
            target: "shiftwork", place, policy,
            "this server throws keys away when its memory is full, jobs and locks included; \
             set maxmemory-policy to noeviction"
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_never_shown() {
        let info = parse("redis://ada:s3cret@localhost:7000/3").unwrap();
        assert_eq!(place_of(&info), "redis://localhost:7000/3");
        let builder = RedisStoreBuilder::new("redis://ada:s3cret@localhost");
        assert!(!format!("{builder:?}").contains("s3cret"));
        for wrong in [
            "redis://ada:s3cret@",
            "redis://ada:s3cret@host:port",
            "http://ada:s3cret@x",
            "redis://ada:s3cret@h/x",
        ] {
            let error = parse(wrong).unwrap_err();
            assert!(error.is_config());
            assert!(!error.to_string().contains("s3cret"), "{error}");
        }
    }

    #[test]
    fn all_forms_of_urls_are_taken() {
        assert_eq!(place_of(&parse("redis://localhost").unwrap()), "redis://localhost:6379/0");
        assert_eq!(place_of(&parse("valkey://localhost/2").unwrap()), "redis://localhost:6379/2");
        assert_eq!(place_of(&parse("unix:///run/redis.sock?db=1").unwrap()), "unix:///run/redis.sock?db=1");
    }
}

//! One multiplexed connection that comes back by itself.
//!
//! A call that fails is never sent again from here: whether it took effect is not known, and only the caller knows whether
//! repeating it is safe. The next call after a broken connection opens a new one.

use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Cmd, FromRedisValue, Pipeline, RedisError, Value};
use shiftwork_core::Error;

use crate::errors::{ends_connection, error_of};

/// Where to connect to, and how patiently.
#[derive(Clone)]
pub(crate) struct Target {
    pub(crate) client: redis::Client,
    /// The same in RESP3, in which a server may speak unasked.
    pub(crate) resp3_client: redis::Client,
    /// The server for people to read: no credentials.
    pub(crate) place: String,
    pub(crate) connect_timeout: Duration,
    /// The driver's default of half a second is too short for a server that saves its data.
    pub(crate) response_timeout: Duration,
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.place)
    }
}

/// The connection to one server.
#[derive(Debug)]
pub(crate) struct Connection {
    target: Target,
    current: Mutex<Current>,
    /// Held while connecting, so that a hundred waiting calls open one connection.
    connecting: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct Current {
    connection: Option<MultiplexedConnection>,
    /// Counts connections: a late error of an old one must not end its successor.
    generation: u64,
}

impl fmt::Debug for Current {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "connection {} ({})",
            self.generation,
            if self.connection.is_some() { "open" } else { "closed" }
        )
    }
}

impl Connection {
    pub(crate) fn new(target: Target) -> Self {
        Self { target, current: Mutex::default(), connecting: tokio::sync::Mutex::default() }
    }

    pub(crate) fn target(&self) -> &Target {
        &self.target
    }

    /// Sends a command.
    pub(crate) async fn query<T: FromRedisValue>(&self, command: &Cmd) -> Result<T, Error> {
        self.try_query(command).await.map_err(|error| self.error(&error))
    }

    /// Sends a command; the error is the driver's.
    pub(crate) async fn try_query<T: FromRedisValue>(&self, command: &Cmd) -> Result<T, RedisError> {
        let (generation, mut connection) = self.get().await?;
        let result = command.query_async(&mut connection).await;
        self.after(generation, result)
    }

    /// Sends a pipeline; each command has its own result.
    pub(crate) async fn pipeline(
        &self,
        pipeline: &mut Pipeline,
    ) -> Result<Vec<Result<Value, RedisError>>, Error> {
        if pipeline.is_empty() {
            return Ok(Vec::new());
        }
        pipeline.ignore_errors();
        let result = async {
            let (generation, mut connection) = self.get().await?;
            let result = pipeline.query_async(&mut connection).await;
            self.after(generation, result)
        };
        let replies: Vec<Result<Value, RedisError>> = result.await.map_err(|error| self.error(&error))?;
        if replies.iter().filter_map(|reply| reply.as_ref().err()).any(ends_connection) {
            self.close(None);
        }
        Ok(replies)
    }

    /// Core's error for one of the driver's.
    pub(crate) fn error(&self, error: &RedisError) -> Error {
        error_of(&self.target.place, error)
    }

    async fn get(&self) -> Result<(u64, MultiplexedConnection), RedisError> {
        if let Some(open) = self.open() {
            return Ok(open);
        }
        let _one_at_a_time = self.connecting.lock().await;
        if let Some(open) = self.open() {
            return Ok(open);
        }
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(self.target.connect_timeout))
            .set_response_timeout(Some(self.target.response_timeout));
        let connection = self.target.client.get_multiplexed_async_connection_with_config(&config).await?;
        let mut current = self.lock();
        current.generation += 1;
        current.connection = Some(connection.clone());
        Ok((current.generation, connection))
    }

    fn open(&self) -> Option<(u64, MultiplexedConnection)> {
        let current = self.lock();
        current.connection.clone().map(|connection| (current.generation, connection))
    }

    fn after<T>(&self, generation: u64, result: Result<T, RedisError>) -> Result<T, RedisError> {
        if result.as_ref().is_err_and(ends_connection) {
            self.close(Some(generation));
        }
        result
    }

    fn close(&self, generation: Option<u64>) {
        let mut current = self.lock();
        if generation.is_none_or(|generation| generation == current.generation) {
            current.connection = None;
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Current> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

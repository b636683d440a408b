//! The job types of a pool.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::handler::Handler;
use super::options::JobOptions;
use crate::error::Error;
use crate::job::JobName;
use crate::store::{QueueLimit, QueueShare};

/// A name, a handler and options.
pub(crate) struct JobType {
    pub(crate) name: JobName,
    pub(crate) options: JobOptions,
    pub(crate) handler: Arc<dyn Handler>,
}

/// The job types of a pool by name.
#[derive(Default)]
pub(crate) struct Registry {
    types: BTreeMap<JobName, Arc<JobType>>,
}

impl Registry {
    pub(crate) fn add(
        &mut self,
        name: &str,
        options: JobOptions,
        handler: Arc<dyn Handler>,
    ) -> Result<(), Error> {
        let name = JobName::new(name).map_err(|error| Error::config(error.to_string()))?;
        options.check(&name)?;
        if self.types.contains_key(&name) {
            return Err(Error::config(format!(
                "job type {name:?} is registered twice; a pool takes one handler for each name"
            )));
        }
        self.types.insert(name.clone(), Arc::new(JobType { name, options, handler }));
        Ok(())
    }

    pub(crate) fn get(&self, name: &JobName) -> Option<&Arc<JobType>> {
        self.types.get(name)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.types.is_empty()
    }

    pub(crate) fn queues(&self) -> Arc<[JobName]> {
        self.types.keys().cloned().collect()
    }

    pub(crate) fn shares(&self) -> Vec<QueueShare> {
        self.types
            .values()
            .map(|job_type| QueueShare { queue: job_type.name.clone(), weight: job_type.options.priority })
            .collect()
    }

    pub(crate) fn limits(&self) -> Vec<QueueLimit> {
        self.types
            .values()
            .map(|job_type| QueueLimit {
                queue: job_type.name.clone(),
                max_concurrency: job_type.options.max_concurrency,
            })
            .collect()
    }
}

//! What is kept of a valid job file: what the checks of other files need to know of the job, and a digest of its
//! definition. There can be very many files, so jobs themselves are not kept.

use std::collections::BTreeSet;
use std::sync::Arc;

use cronhold_core::job::{ArgPattern, Param, ParamType};
use cronhold_core::{Job, JobId, NameMap};
use serde::{Deserialize, Serialize};

use crate::definition::DefinitionDigest;

/// Most values of a kind that jobs share. Jobs of one directory often have the same params, but need not.
const SHARED_MAX: usize = 4_096;

/// The outline of a job.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct JobOutline {
    pub(super) definition: DefinitionDigest,
    #[serde(with = "shared_list")]
    pub(super) params: Arc<[ParamOutline]>,
    pub(super) links: Box<[JobLink]>,
    pub(super) pools: Box<[PoolUse]>,
}

/// A param as the jobs see it that give args.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct ParamOutline {
    pub(super) name: Box<str>,
    pub(super) is_required: bool,
    pub(super) choices: Box<[Box<str>]>,
    pub(super) kind: ParamType,
    /// The text of its pattern.
    pub(super) pattern: Option<Box<str>>,
}

/// A reference to another job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct JobLink {
    /// Path of the condition or action, up to `after` or `run`.
    #[serde(with = "shared_text")]
    pub(super) path: Arc<str>,
    pub(super) job: JobId,
    /// The args that lead to this id, if it was written as a template: `region = eu`.
    pub(super) when: Option<Box<str>>,
    #[serde(with = "shared_list")]
    pub(super) args: Arc<[LinkArg]>,
    /// Whether this job's run waits for a run of the other one.
    pub(super) waits: bool,
}

/// A condition that names a pool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct PoolUse {
    /// Path of the condition.
    pub(super) path: Box<str>,
    pub(super) pool: Box<str>,
    /// The size of the pool.
    pub(super) count: u32,
}

/// An arg that a reference or a trigger gives.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct LinkArg {
    pub(super) name: Box<str>,
    /// Its value; `None` if it contains expressions.
    pub(super) literal: Option<Box<str>>,
}

impl JobOutline {
    pub(super) fn new(job: &Job, params: Arc<[ParamOutline]>, links: Vec<JobLink>, pools: Vec<PoolUse>) -> Self {
        Self { definition: DefinitionDigest::new(job), params, links: links.into(), pools: pools.into() }
    }

    /// Whether the checks of other jobs, and the checks of its references, have the same result for both.
    pub(super) fn has_same_links(&self, other: &Self) -> bool {
        self.params == other.params && self.links == other.links && self.pools == other.pools
    }
}

impl ParamOutline {
    pub(super) fn all(params: &NameMap<Param>) -> Arc<[Self]> {
        let outline = |(name, param): (&String, &Param)| Self {
            name: name.as_str().into(),
            is_required: param.default.is_none(),
            choices: param.choices.iter().map(|choice| choice.as_str().into()).collect(),
            kind: param.kind,
            pattern: param.pattern.as_ref().map(|pattern| pattern.as_str().into()),
        };
        params.iter().map(outline).collect()
    }

    /// A param that accepts the values of this type and pattern.
    pub(super) fn form(&self) -> Param {
        let pattern = self.pattern.as_ref().and_then(|text| ArgPattern::parse(text).ok());
        Param { kind: self.kind, pattern, ..Param::default() }
    }
}

/// The param of a name.
pub(super) fn param<'a>(params: &'a [ParamOutline], name: &str) -> Option<&'a ParamOutline> {
    params.iter().find(|param| *param.name == *name)
}

/// Values that many outlines share.
#[derive(Debug, Default)]
pub(super) struct SharedValues {
    params: BTreeSet<Arc<[ParamOutline]>>,
    args: BTreeSet<Arc<[LinkArg]>>,
    paths: BTreeSet<Arc<str>>,
}

impl SharedValues {
    /// A copy that shares what other outlines have too. Reading a file leaves its parts between memory that is free
    /// again; copies of many outlines, made one after the other, are dense.
    pub(super) fn compact(&mut self, outline: &JobOutline) -> JobOutline {
        let links = outline.links.iter().map(|link| JobLink {
            path: shared(&mut self.paths, &link.path),
            job: JobId::parse(link.job.as_str()).expect("it is the text of an id"),
            when: link.when.clone(),
            args: shared(&mut self.args, &link.args),
            waits: link.waits,
        });
        JobOutline {
            definition: outline.definition,
            params: shared(&mut self.params, &outline.params),
            links: links.collect(),
            pools: outline.pools.clone(),
        }
    }
}

/// The shared copy of a value.
fn shared<T: Ord + ?Sized>(known: &mut BTreeSet<Arc<T>>, value: &Arc<T>) -> Arc<T> {
    if let Some(known) = known.get(value) {
        return Arc::clone(known);
    }
    if known.len() < SHARED_MAX {
        known.insert(Arc::clone(value));
    }
    Arc::clone(value)
}

/// Serializes a shared list like any other list.
mod shared_list {
    use std::sync::Arc;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(super) fn serialize<T: Serialize, S: Serializer>(list: &Arc<[T]>, serializer: S) -> Result<S::Ok, S::Error> {
        list[..].serialize(serializer)
    }

    pub(super) fn deserialize<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Arc<[T]>, D::Error> {
        Vec::deserialize(deserializer).map(Into::into)
    }
}

/// Serializes a shared text like any other text.
mod shared_text {
    use std::sync::Arc;

    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(text: &Arc<str>, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(text)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Arc<str>, D::Error> {
        String::deserialize(deserializer).map(Into::into)
    }
}

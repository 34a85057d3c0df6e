//! `ReplicatedStatefulSet` (clusterlabs.org/v1alpha1): any replicated application, driven through hooks.

mod spec;
mod status;

pub use spec::{
    Command, Commands, MemberTls, PodPolicy, ReplicatedStatefulSet, ReplicatedStatefulSetSpec, StaticTls, TlsPolicy,
};
pub use status::{MembersStatus, Phase, ReplicatedStatefulSetStatus};

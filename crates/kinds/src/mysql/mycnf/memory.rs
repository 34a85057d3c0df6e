//! How much memory a member has, from the quantities of its container.

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use windlass_core::quantity;

/// The memory to count with: what is requested, else the limit. What cannot be read counts as not given.
pub fn memory_of(request: Option<&Quantity>, limit: Option<&Quantity>) -> Option<u64> {
    [request, limit].into_iter().flatten().find_map(|it| u64::try_from(quantity::bytes(&it.0)?).ok())
}

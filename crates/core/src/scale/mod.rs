//! Parallel scaling: one planner for all kinds.
//!
//! [`plan`] decides which members are drained, which drains are called off, which new ordinals are
//! prepared, and the replica count and delete slots that may be written now. It must not know what
//! a drain is: the kind observes how far each member is and says how many more may go.
//!
//! The rules:
//! 1. **Out before in.** While an ordinal is missing, no drain is started and none removed. Drains
//!    under way go on.
//! 2. **In from the highest, out from the lowest.**
//! 3. **Only a prefix is written.** A `StatefulSet` removes its highest ordinal first, so a finished
//!    member waits for every unfinished one above it; a prepared ordinal waits for every unprepared
//!    one below it. That part of the way is written at once, not when the whole batch is done.
//! 4. **The same prefix with delete slots.** Slots would allow a lower finished member to go
//!    alone. It still waits: the list of ordinals to remove runs from the largest to the smallest,
//!    and it is counted without a gap from its start. So a cluster shrinks in the same order
//!    whether or not slots are used, and slots that nobody asked for never appear.
//! 5. **Work conserving.** The parallelism counts members that are *still draining*. One that is
//!    finished and only waits for a slower, higher ordinal frees its place, and the next drain
//!    starts. There are no waves.
//! 6. **Cancelable.** A draining member that is wanted again is called off, and keeps its place
//!    until it is seen to have stopped draining. One that is wanted again but already finished is
//!    replaced.
//! 7. **Unknown holds its place.** A member whose progress is not known is neither started again
//!    nor removed, and counts as draining.
//! 8. **The guard.** Never more drains are started than the kind allows.

mod planner;
mod view;

#[cfg(test)]
mod properties;
#[cfg(test)]
mod simulation;
#[cfg(test)]
mod tests;

pub use planner::{Direction, Hold, Scale, plan};
pub use view::{Drain, Guard, Limits, View};

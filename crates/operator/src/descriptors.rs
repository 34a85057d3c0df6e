//! How many connections and files the process may have open at once.
//!
//! There is a connection to each MySQL server, and a second one to each primary: a thousand clusters of three need four thousand. Many
//! container runtimes start a process with a soft limit of 1024, and leave it to the process to raise it up to the hard one.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises the soft limit to the hard one. Where that is refused, it stays as it is; what is told is the limit in force.
pub(crate) fn raise_limit() -> Option<u64> {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current != maximum && setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }).is_err() {
        return current;
    }
    maximum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_soft_limit_is_raised_to_the_hard_one() {
        let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
        setrlimit(Resource::Nofile, Rlimit { current: Some(512), maximum }).unwrap();
        assert_eq!(raise_limit(), maximum);
        assert_eq!(getrlimit(Resource::Nofile).current, maximum);
    }
}

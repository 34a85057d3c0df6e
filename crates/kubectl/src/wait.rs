//! Waiting until a cluster is as it was asked to be, and telling meanwhile what is awaited.

use std::io;
use std::time::Duration;

use tokio::time::Instant;

use crate::arguments::Limit;
use crate::cluster::Cluster;
use crate::connect::Session;
use crate::error::Error;
use crate::follow::{Follow, Scope};
use crate::kinds::Target;
use crate::live::{Progress, TICK, Waiting};
use crate::output::Output;
use crate::render::age;

/// How a cluster stands to what is waited for.
pub(crate) enum Verdict {
    /// It is so.
    Met,
    /// Not yet; this is awaited.
    NotYet(Waiting),
    /// It will not be so by waiting.
    Never(String),
}

/// Follows a cluster until `judge` is content with it. `hint` says what stays behind when the time is over.
pub(crate) async fn until(
    session: &Session,
    target: &Target,
    limit: Limit,
    output: &Output,
    hint: &str,
    judge: impl Fn(&Cluster) -> Verdict,
) -> Result<Cluster, Error> {
    let mut follow = Follow::start(session, &Scope::one(session, target));
    let mut progress = Progress::new(io::stderr(), output.error_paint(), output.error_terminal());
    let result = watch(&mut follow, target, limit, &mut progress, hint, judge).await;
    progress.end();
    let cluster = result?;
    // The two watches are not in step: what is told at the end is read anew, so that the logbook is not older than the answer.
    Ok(session.get(target).await.unwrap_or(cluster))
}

async fn watch(
    follow: &mut Follow,
    target: &Target,
    limit: Limit,
    progress: &mut Progress<io::Stderr>,
    hint: &str,
    judge: impl Fn(&Cluster) -> Verdict,
) -> Result<Cluster, Error> {
    let began = Instant::now();
    let mut ticks = tokio::time::interval(if progress.is_live() { TICK } else { Duration::from_hours(1) });
    let mut waiting = Waiting { what: format!("looking at {}", target.handle()), ..Waiting::default() };
    let (mut seen, mut trouble) = (false, None);
    loop {
        let news = tokio::select! {
            news = follow.next() => news?,
            () = over(began, limit) => {
                let limit = limit.0.map_or(0, |limit| i64::try_from(limit.as_secs()).unwrap_or(i64::MAX));
                let awaited = with(&waiting, trouble.as_ref()).line();
                return Err(Error::NotMet(format!("gave up after {}: {awaited}{hint}", age::seconds(limit))));
            }
            _ = ticks.tick() => {
                if progress.is_live() {
                    progress.show(&with(&waiting, trouble.as_ref()), began.elapsed());
                }
                continue;
            }
        };
        let known = news.is_some();
        if let Some(clusters) = news {
            let Some(cluster) = clusters.into_iter().next() else {
                return Err(Error::Gone(target.handle()));
            };
            match judge(&cluster) {
                Verdict::Met => return Ok(cluster),
                Verdict::Never(why) => return Err(Error::NotMet(why)),
                Verdict::NotYet(news) => waiting = news,
            }
        }
        seen = seen || known;
        trouble = follow.trouble().map(str::to_owned);
        // In a pipe, that nothing was seen yet is no news.
        if seen || trouble.is_some() || progress.is_live() {
            progress.show(&with(&waiting, trouble.as_ref()), began.elapsed());
        }
    }
}

/// What is awaited, and what is wrong with the connection.
fn with(waiting: &Waiting, trouble: Option<&String>) -> Waiting {
    let details = waiting.details.iter().chain(trouble).cloned().collect();
    Waiting { details, ..waiting.clone() }
}

/// Ends when the time is over; never, without a limit.
async fn over(began: Instant, limit: Limit) {
    match limit.0 {
        Some(limit) => tokio::time::sleep_until(began + limit).await,
        None => std::future::pending().await,
    }
}

//! The bare writer: posts objects as fast as the API server takes them, and knows nothing of clusters.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use futures::{StreamExt as _, TryStreamExt as _};
use kube::Client;
use serde_json::Value;

/// How many requests are under way at once.
pub(crate) const IN_FLIGHT: usize = 32;

/// One request, ready to be sent.
pub(crate) struct Post {
    path: String,
    body: Vec<u8>,
}

impl Post {
    /// The creation of an object in a collection such as `/apis/apps/v1` `statefulsets`.
    pub(crate) fn of(group: &str, plural: &str, namespace: &str, object: &Value) -> Self {
        Self { path: format!("{group}/namespaces/{namespace}/{plural}"), body: object.to_string().into_bytes() }
    }
}

/// Sends all; tells how long it took from the first request to the last answer.
pub(crate) async fn post_all(client: &Client, posts: Vec<Post>) -> Result<Duration> {
    let began = Instant::now();
    futures::stream::iter(posts)
        .map(|post| send(client.clone(), post))
        .buffer_unordered(IN_FLIGHT)
        .try_collect::<Vec<()>>()
        .await?;
    Ok(began.elapsed())
}

async fn send(client: Client, post: Post) -> Result<()> {
    let request = http::Request::post(&post.path).header(http::header::CONTENT_TYPE, "application/json").body(post.body)?;
    client.request_text(request).await.map(drop).with_context(|| format!("POST {}", post.path))
}

//! Gathers what an answer rests on: the cluster, its volume claims, and what PD says. Whoever asks gives up after 3 s, so each part has a
//! deadline of its own, and what was not had in time is not known.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind, ListParams};
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};
use windlass_clients::http::{Http, Peer};
use windlass_clients::papers::Papers;
use windlass_clients::pd::Pd;
use windlass_clients::tidb::read_papers;
use windlass_kinds::tidb::discovery::{Answer, Asker, Claim, Cluster, Endpoint, Heard, Scene, Told};

/// How long one question to the API server may take.
const LOOK: Duration = Duration::from_millis(800);
/// How long PD may take.
const PD: Duration = Duration::from_secs(1);

/// What answers are made from.
pub(super) struct Desk {
    client: Client,
    http: Http,
    namespace: String,
    name: String,
    started: Instant,
    heard: Mutex<Heard>,
    port: Option<u16>,
}

impl Desk {
    pub(super) fn new(client: Client, namespace: &str, name: &str) -> Self {
        Self {
            client,
            http: Http::default(),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            started: Instant::now(),
            heard: Mutex::default(),
            port: None,
        }
    }

    /// For tests: every PD is at this port of this machine.
    #[cfg(test)]
    pub(super) fn with_pd_at(self, port: u16) -> Self {
        Self { port: Some(port), ..self }
    }

    /// The cluster.
    pub(super) fn name(&self) -> (&str, &str) {
        (&self.namespace, &self.name)
    }

    /// How a member begins.
    pub(super) async fn answer(&self, asker: &Asker) -> Answer {
        let came = self.started.elapsed();
        let cluster = match self.cluster().await {
            Ok(cluster) => cluster,
            Err(why) => return Answer::Wait { why },
        };
        let claims = self.claims(&cluster).await;
        let told = self.ask(&cluster, claims.as_deref().unwrap_or_default(), asker).await;
        let own = Claim::of(claims.as_deref().unwrap_or_default(), asker.ordinal);
        // Nothing is waited for from here on: what was heard cannot change while the answer is made of it.
        let mut heard = self.heard.lock().unwrap_or_else(PoisonError::into_inner);
        let now = self.started.elapsed();
        let scene = Scene { asker, cluster: &cluster, claims: &claims, told: &told, heard: &heard, now };
        let answer = scene.answer();
        heard.note(asker.ordinal, own, came, &answer, now);
        answer
    }

    /// The cluster, as it is stored. Untyped: what is wrong elsewhere in it must not keep PD from starting.
    pub(super) async fn cluster(&self) -> Result<Cluster, String> {
        let kind = ApiResource::from_gvk(&GroupVersionKind::gvk("pingcap.com", "v1alpha1", "TidbCluster"));
        let api: Api<DynamicObject> = Api::namespaced_with(self.client.clone(), &self.namespace, &kind);
        let object = self.look(&format!("TidbCluster {:?}", self.name), api.get(&self.name)).await?;
        let object = serde_json::to_value(object).map_err(|error| error.to_string())?;
        Cluster::read(&object).map_err(|error| error.to_string())
    }

    async fn claims(&self, cluster: &Cluster) -> Result<Vec<Claim>, String> {
        let api: Api<PersistentVolumeClaim> = Api::namespaced(self.client.clone(), &self.namespace);
        let parameters = ListParams::default().labels(&cluster.selector());
        let claims = self.look("the volume claims", api.list(&parameters)).await?;
        Ok(claims.items.iter().map(|claim| Claim::read(claim, &self.name)).collect())
    }

    async fn look<T>(&self, what: &str, question: impl Future<Output = kube::Result<T>>) -> Result<T, String> {
        let place = format!("{what} in namespace {:?} could not be read", self.namespace);
        match timeout(LOOK, question).await {
            Ok(answer) => answer.map_err(|error| format!("{place}: {error}")),
            Err(_) => Err(format!("{place} within {} ms", LOOK.as_millis())),
        }
    }

    /// What PD says: that of this cluster, else one that it joins.
    async fn ask(&self, cluster: &Cluster, claims: &[Claim], asker: &Asker) -> Result<Told, String> {
        let papers = if cluster.tls.at_servers() { Some(self.papers("cluster-client").await?) } else { None };
        let tls = papers.map(|papers| papers.client_configuration()).transpose()?.map(Arc::new);
        let peer = |Endpoint { host, port }: Endpoint| {
            let local = self.port.map(|port| ("127.0.0.1".to_owned(), port));
            let (address, port) = local.unwrap_or_else(|| (host.clone(), port));
            Peer { host, address, port, process: String::new(), tls: tls.clone() }
        };
        let all = |endpoints: Vec<Endpoint>| endpoints.into_iter().map(peer).collect::<Vec<_>>();
        let silence = match self.first_of(all(cluster.own_endpoints(claims, asker))).await {
            Ok(told) => return Ok(told),
            Err(silence) => silence,
        };
        let others = all(cluster.other_endpoints());
        if others.is_empty() { Err(silence) } else { self.first_of(others).await }
    }

    /// The first that answers of those that are asked all at once; else why the first one in the list did not.
    async fn first_of(&self, peers: Vec<Peer>) -> Result<Told, String> {
        let mut asked = JoinSet::new();
        for (place, peer) in peers.into_iter().enumerate() {
            let http = self.http.clone();
            asked.spawn(async move {
                let late = || format!("{peer:?} did not answer within {} s", PD.as_secs());
                let members = timeout(PD, Pd::new(&http, &peer).members()).await;
                let members = members.map_err(|_| late()).and_then(|it| it.map_err(|failure| failure.to_string()));
                (place, members.map(|it| Told { cluster: it.cluster, members: it.members }))
            });
        }
        let mut silence = "there is nobody to ask".to_owned();
        while let Some(answer) = asked.join_next().await {
            match answer {
                Ok((_, Ok(told))) => return Ok(told),
                Ok((0, Err(why))) => silence = why,
                Ok((_, Err(_))) | Err(_) => {}
            }
        }
        Err(silence)
    }

    /// The certificate of one of the cluster's Secrets.
    pub(super) async fn papers(&self, whose: &str) -> Result<Papers, String> {
        let secret = match whose {
            "cluster-client" => format!("{}-cluster-client-secret", self.name),
            component => format!("{}-{component}-cluster-secret", self.name),
        };
        match timeout(LOOK, read_papers(&self.client, &self.namespace, &secret)).await {
            Ok(papers) => papers,
            Err(_) => Err(format!("Secret {secret:?} could not be read within {} ms", LOOK.as_millis())),
        }
    }
}

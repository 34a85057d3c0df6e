use windlass_kinds::tidb::answers::{PdConfig, Stores};
use windlass_kinds::tidb::deeds::Task;
use windlass_kinds::tidb::facts::End;

use crate::server::{Server, Start, until};
use crate::world::World;

#[tokio::test]
#[ignore = "needs WINDLASS_PD_SERVER"]
async fn a_new_pd_tells_all_that_there_is() {
    let server = Server::alone("a-pd-0").await;
    let seen = World::new().see(&server).await;
    assert!(seen.cluster > 1 << 32);
    let members = seen.members.unwrap();
    let [member] = members.as_slice() else { panic!("{members:?}") };
    assert_eq!((member.name.as_str(), member.client_url.clone()), ("a-pd-0", format!("http://127.0.0.1:{}", server.port)));
    assert_eq!(seen.health, Ok([(member.id, true)].into()));
    assert_eq!(seen.leader, Ok(Some(member.id)));
    assert_eq!(seen.config, Ok(PdConfig { max_replicas: 3, location_labels: vec![], placement_rules: true }));
    assert_eq!(seen.tiflash_copies, Ok(0));
    assert_eq!(seen.stores, Ok(Stores::NotBootstrapped));
    assert_eq!(seen.evicting, Ok([].into()));
}

#[tokio::test]
#[ignore = "needs WINDLASS_PD_SERVER"]
async fn members_lead_and_leave() {
    let world = World::new();
    let first = Server::alone("a-pd-0").await;
    let mut others = Vec::new();
    for name in ["a-pd-1", "a-pd-2"] {
        let mut server = Server::start(name, &Start::Joining(&first), "http", &[]);
        server.answers().await;
        until("it is a member", async || {
            let members = world.look(&[&first]).await?.members?;
            members.iter().any(|it| it.name == name).then_some(()).ok_or_else(|| format!("{members:?}"))
        })
        .await;
        others.push(server);
    }
    let [second, third] = others.as_mut_slice() else { panic!("there are two") };
    let ids: std::collections::BTreeMap<String, u64> =
        world.see(&first).await.members.unwrap().into_iter().map(|it| (it.name, it.id)).collect();

    // Another one leads, and every one of them says so.
    let lead = || Task::TransferPdLeader { to: "a-pd-1".into() };
    assert_eq!(world.act(&first, None, lead()).await, End::Done);
    until("it leads", async || {
        let leader = world.look(&[&first]).await?.leader?;
        (leader == Some(ids["a-pd-1"])).then_some(()).ok_or_else(|| format!("{leader:?}"))
    })
    .await;
    world.done(&first, lead()).await;
    assert!(world.failed(&first, Task::TransferPdLeader { to: "a-pd-9".into() }).await.contains("no valid pd"));

    // One that is gone is seen as unhealthy, and the rest goes on.
    third.kill();
    let id = ids["a-pd-2"];
    until("it is unhealthy", async || {
        let health = world.look(&[&*third, &first]).await?.health?;
        (health.get(&id) == Some(&false)).then_some(()).ok_or_else(|| format!("{health:?}"))
    })
    .await;
    let wrong = Task::DeletePdMember { id, name: "a-pd-1".into() };
    assert!(world.failed(&first, wrong).await.contains("under the name \"a-pd-2\""));
    let leave = || Task::DeletePdMember { id, name: "a-pd-2".into() };
    let elsewhere = world.act(&first, Some(7), leave()).await;
    assert!(matches!(&elsewhere, End::Failed { why } if why.contains("about cluster 7")), "{elsewhere:?}");
    let unknown = world.act(&first, None, leave()).await;
    assert!(matches!(&unknown, End::Failed { why } if why.contains("not on record")), "{unknown:?}");
    assert_eq!(world.see(second).await.members.unwrap().len(), 3);
    world.done(&first, leave()).await;
    assert_eq!(world.see(second).await.members.unwrap().len(), 2);

    // Without a majority nothing is known, and that is said.
    second.kill();
    let why = until("the leader is missed", async || match world.look(&[&first]).await {
        Err(why) => Ok(why),
        Ok(seen) => Err(format!("{seen:?}")),
    })
    .await;
    assert!(why.starts_with("asking PD for its cluster: http://localhost:"), "{why}");
}

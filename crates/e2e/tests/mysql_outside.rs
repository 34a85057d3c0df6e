//! A cluster that copies a server elsewhere, follows it, changes its primary meanwhile, and is cut loose in the end.

#![cfg(feature = "lab")]

use anyhow::{Result, ensure};
use rustix::process::Signal;
use serde_json::json;
use windlass_e2e::mysql::Mysql;
use windlass_e2e::{Place, Stage};

/// The Secret with the way to the other server.
const SECRET: &str = "elsewhere";

#[tokio::test(flavor = "multi_thread")]
async fn a_server_elsewhere_is_copied_and_followed_until_the_cluster_is_cut_loose() -> Result<()> {
    let stage = Stage::get().await?;
    stage
        .with_namespace("elsewhere", true, async |there| {
            let source = there.mysql(|cluster| cluster["spec"]["replicas"] = 1.into()).await?;
            prepare(&source).await?;
            stage.with_namespace("follower", true, async |here| follow(&source, here).await).await
        })
        .await
}

/// The accounts that a copy needs there, and something to copy.
async fn prepare(source: &Mysql) -> Result<()> {
    let accounts = "CREATE USER copier@'%' IDENTIFIED BY 'copy'; GRANT BACKUP_ADMIN, REPLICATION SLAVE ON *.* TO copier@'%'; \
                    CREATE USER starter@localhost IDENTIFIED BY 'start'; GRANT ALL ON *.* TO starter@localhost WITH GRANT OPTION; \
                    GRANT PROXY ON ''@'' TO starter@localhost WITH GRANT OPTION; \
                    CREATE DATABASE harbour; CREATE TABLE harbour.rope (length INT PRIMARY KEY)";
    source.administer(0, accounts).await?;
    source.insert(0, "harbour.rope", 1).await
}

async fn follow(source: &Mysql, here: &Place) -> Result<()> {
    let stage = here.stage();
    let host = format!("{}.{}.svc", source.primary_service(), source.place.namespace());
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": { "name": SECRET },
        "stringData": {
            "HOST": host, "PORT": "3306", "USER": "copier", "PASSWORD": "copy", "INIT_USER": "starter", "INIT_PASSWORD": "start",
        },
    });
    here.apply(&[secret]).await?;
    let mysql = here.mysql(|cluster| cluster["spec"]["replicationSourceSecretName"] = SECRET.into()).await?;
    ensure!(mysql.status().await?.cloned, "the status does not tell of the copy");
    mysql.wait_for_rows(3, "harbour.rope", "1").await?;
    stage.say("the data is copied, and all follow");

    let primary = mysql.primary().await?;
    let refused = mysql.try_sql(primary, "moco-writable", &mysql.host(primary), "INSERT INTO harbour.rope VALUES (99)").await?;
    ensure!(refused.code != 0 && refused.errors.contains("read-only option"), "a copy took a write: {refused:?}");
    source.insert(0, "harbour.rope", 2).await?;
    mysql.wait_for_rows(3, "harbour.rope", "1\n2").await?;
    stage.say("what is written there arrives here, and nothing is taken here");

    mysql.signal(primary, Signal::KILL).await?;
    mysql.another_primary(primary).await?;
    source.insert(0, "harbour.rope", 3).await?;
    mysql.wait_until_healthy().await?;
    mysql.wait_for_rows(3, "harbour.rope", "1\n2\n3").await?;
    stage.say("its primary was killed, and another one follows");

    mysql.patch(&json!({ "spec": { "replicationSourceSecretName": null } })).await?;
    mysql.wait_until_healthy().await?;
    mysql.insert(mysql.primary().await?, "harbour.rope", 4).await?;
    mysql.wait_for_rows(3, "harbour.rope", "1\n2\n3\n4").await?;
    stage.say("cut loose, it takes writes of its own");
    Ok(())
}

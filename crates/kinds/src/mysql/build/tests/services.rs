//! Services, and what users add to them.

use k8s_openapi::api::core::v1::ServiceSpec;

use super::*;

fn service(made: &[Manifest], name: &str) -> Manifest {
    find(made, ObjectKind::Service, name).unwrap()
}

fn spec(manifest: &Manifest) -> ServiceSpec {
    from(manifest.spec.clone())
}

#[rstest]
#[case("moco-harbour", None)]
#[case("moco-harbour-primary", Some("primary"))]
#[case("moco-harbour-replica", Some("replica"))]
fn each_leads_to_its_own(#[case] name: &str, #[case] role: Option<&str>) {
    for resource in [typical(), full()] {
        let mut expected = json!({ "app.kubernetes.io/name": "mysql", "app.kubernetes.io/instance": "harbour", "app.kubernetes.io/created-by": "moco" });
        if let Some(role) = role {
            expected["moco.cybozu.com/role"] = role.into();
        }
        assert_eq!(service(&made(&resource), name).spec["selector"], expected);
    }
}

#[test]
fn ports_are_the_users_and_ours() {
    let ports = |name: &str| {
        let ports = spec(&service(&made(&full()), name)).ports.unwrap();
        let port = |it: &k8s_openapi::api::core::v1::ServicePort| {
            (it.name.clone().unwrap(), it.port, it.protocol.clone().unwrap(), it.node_port)
        };
        ports.iter().map(port).collect::<Vec<_>>()
    };
    let tcp = |name: &str, number: i32, node: Option<i32>| (name.to_owned(), number, "TCP".to_owned(), node);
    assert_eq!(
        ports("moco-harbour-primary"),
        [tcp("more", 4000, None), tcp("mysql", 3306, Some(30306)), tcp("mysqlx", 33060, None)]
    );
    assert_eq!(ports("moco-harbour-replica"), [tcp("mysql", 3306, None), tcp("mysqlx", 33060, None)]);
    assert_eq!(ports("moco-harbour"), [tcp("mysql", 3306, None), tcp("mysqlx", 33060, None), tcp("mysql-admin", 33062, None)]);
}

#[test]
fn what_a_template_says_of_a_service_stays_unless_we_need_it() {
    let made = made(&full());
    let primary = service(&made, "moco-harbour-primary");
    assert_eq!(primary.labels["tier"], "front");
    assert_eq!(primary.labels["app.kubernetes.io/instance"], "harbour");
    assert_eq!(primary.annotations["dns"], "harbour.example");
    assert_eq!(spec(&primary).type_.as_deref(), Some("LoadBalancer"));
    assert_eq!(spec(&service(&made, "moco-harbour-replica")).type_.as_deref(), Some("NodePort"));
    assert_eq!(spec(&service(&super::made(&typical()), "moco-harbour-primary")).type_.as_deref(), Some("ClusterIP"));
}

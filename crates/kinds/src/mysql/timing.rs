use std::time::Instant;
use super::fixture::Fixture;
use super::*;
use windlass_core::kind::Kind as _;

fn time<T>(what: &str, mut work: impl FnMut() -> T) {
    let n = 300;
    for _ in 0..20 { std::hint::black_box(work()); }
    let began = Instant::now();
    for _ in 0..n { std::hint::black_box(work()); }
    println!("{what}: {:.1} us", began.elapsed().as_secs_f64() * 1e6 / f64::from(n));
}

#[test]
fn timing() {
    let fixture = Fixture::healthy(3);
    fixture.watched(|observed| {
        time("validate", || validate(observed.resource));
        let cluster = validate(observed.resource).unwrap();
        let none = std::collections::BTreeMap::new();
        time("my_cnf", || build::my_cnf(&cluster, &none).is_ok());
        let inputs = build::Inputs { agent_image: "w", server_id_base: 100, size: 3, options: &none, credentials: observed.children.secrets.get("moco-harbour"), remembered_credentials: true, certificate: None };
        time("objects", || build::objects(&cluster, &inputs, observed.children).applied.len());
        time("scene", || scene::Scene::of(observed, remember::entries(&observed.memory.entries())).size);
        time("plan", || MySql::plan(observed).steps.len());
        time("remember", || { let mut l = observed.memory.entries(); MySql::remember(observed, &mut l); l });
        time("proves", || MySql::proves(observed));
        time("probes", || MySql::probes(observed));
        time("look_again", || MySql::look_again(observed));
    });
}

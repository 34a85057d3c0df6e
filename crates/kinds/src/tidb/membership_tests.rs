use super::*;
use crate::tidb::answers::StoreState;
use rstest::rstest;

fn store(labels: &[(&str, &str)]) -> Store {
    Store {
        id: 4,
        address: "a-tikv-3.a-tikv-peer.shop.svc:20160".into(),
        state: StoreState::Up,
        labels: labels.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect(),
        leaders: 0,
        regions: 0,
        started: None,
        heard: None,
    }
}

#[rstest]
#[case(&[], Component::Tikv)]
#[case(&[("zone", "tiflash")], Component::Tikv)]
#[case(&[("engine", "tikv")], Component::Tikv)]
#[case(&[("engine", "tiflash")], Component::Tiflash)]
#[case(&[("engine", "tiflash_compute")], Component::Tiflash)]
fn a_store_is_told_by_its_engine(#[case] labels: &[(&str, &str)], #[case] component: Component) {
    assert_eq!(component_of(&store(labels)), component);
}

#[rstest]
#[case("a-tikv-3.a-tikv-peer.shop.svc:20160", Some(3))]
#[case("a-tikv-3.a-tikv-peer.shop.svc.cluster.local:20160", Some(3))]
#[case("a-tikv-03.a-tikv-peer.shop.svc:20160", None)]
#[case("b-tikv-3.b-tikv-peer.shop.svc:20160", None)]
#[case("a-tikv-3.a-tikv-peer.other.svc:20160", None)]
#[case("a-tiflash-3.a-tiflash-peer.shop.svc:3930", None)]
#[case("a-tikv-3:20160", None)]
#[case("a-tikv-3.a-tikv-peer.shop.svcx:20160", None)]
#[case("10.0.0.1:20160", None)]
#[case("", None)]
fn a_pod_is_told_by_its_address(#[case] address: &str, #[case] ordinal: Option<u16>) {
    let names = Names::new("a", "shop", None);
    assert_eq!(pod_at(&names, Component::Tikv, address), ordinal.map(Ordinal::new));
}

#[rstest]
#[case("a-pd-1", Some(1))]
#[case("a-pd-1.a-pd-peer.shop.svc.cluster.local", Some(1))]
#[case("b-pd-1", None)]
#[case("", None)]
fn a_member_of_pd_is_told_by_its_name(#[case] name: &str, #[case] ordinal: Option<u16>) {
    let member = PdMember { id: 1, name: name.into(), client_url: String::new() };
    assert_eq!(pod_of(&Names::new("a", "shop", None), &member), ordinal.map(Ordinal::new));
}

#[rstest]
#[case(&["x", "y"], Some(9))]
#[case(&["x"], None)]
#[case(&["x", "z"], None)]
#[case(&[], None)]
fn a_record_counts_for_the_volumes_it_was_made_with(#[case] claims: &[&str], #[case] id: Option<u64>) {
    let entry = MemberEntry { id: "9".into(), claims: vec!["x".into(), "y".into()], ..MemberEntry::default() };
    assert_eq!(recorded(Some(&entry), claims).map(|(_, id)| id), id);
    assert_eq!(recorded(None, claims), None);
}

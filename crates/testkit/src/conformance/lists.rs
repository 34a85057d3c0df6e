//! Lists: selectors, pages, revisions, metadata-only views.

use serde_json::{Value, json};

use super::{
    Case,
    desk::{CONFIG_MAPS, CaseResult, Desk, SPECIMENS, check, config_map, names, refused, same, text, version},
    specimen::specimen,
};

pub(super) fn cases() -> Vec<Case> {
    super::list_cases![
        a_list_has_a_version_and_its_items_in_order,
        label_selectors_choose,
        a_bad_label_selector_is_refused,
        field_selectors_choose_by_name,
        an_unknown_field_selector_is_refused,
        pages_cover_everything_once,
        a_page_tells_how_many_remain,
        later_pages_show_the_revision_of_the_first,
        a_bad_continue_token_is_refused,
        a_list_over_all_namespaces_includes_this_one,
        an_exact_list_shows_the_past,
        a_list_may_be_newer_than_asked,
        metadata_alone_can_be_read,
        an_empty_list_is_a_list,
    ]
}

async fn five(desk: &Desk) -> CaseResult {
    for (name, group) in [("e", "odd"), ("b", "even"), ("d", "even"), ("a", "odd"), ("c", "odd")] {
        let mut object = specimen(name, &json!({"size": 1}));
        object["metadata"]["labels"] = json!({"group": group, "all": "yes"});
        desk.post(&SPECIMENS, &object).await?;
    }
    Ok(())
}

async fn a_list_has_a_version_and_its_items_in_order(desk: Desk) -> CaseResult {
    five(&desk).await?;
    let list = desk.list(&SPECIMENS, "").await?;
    same(text(&list, "/kind"), "SpecimenList", "kind")?;
    same(&names(&list), &["a", "b", "c", "d", "e"].map(str::to_owned).to_vec(), "names")?;
    let newest = list["items"].as_array().into_iter().flatten().filter_map(|item| version(item).ok()).max();
    check(newest.is_some_and(|newest| version(&list).is_ok_and(|list| list >= newest)), "the list is older than its items")
}

async fn label_selectors_choose(desk: Desk) -> CaseResult {
    five(&desk).await?;
    for (selector, wanted) in [
        ("group%3Deven", "b d"),
        ("group%3D%3Deven", "b d"),
        ("group!%3Deven", "a c e"),
        ("group+in+(even%2Codd)", "a b c d e"),
        ("group+notin+(even)", "a c e"),
        ("group", "a b c d e"),
        ("!group", ""),
        ("none!%3Dx", "a b c d e"),
        ("all%3Dyes%2Cgroup%3Dodd", "a c e"),
    ] {
        let found = desk.list_names(&SPECIMENS, &format!("labelSelector={selector}")).await?;
        same(found.join(" ").as_str(), wanted, selector)?;
    }
    Ok(())
}

async fn a_bad_label_selector_is_refused(desk: Desk) -> CaseResult {
    for selector in ["group+in+even", "%3Dx", "a+b"] {
        refused(desk.list(&SPECIMENS, &format!("labelSelector={selector}")).await, 400, "BadRequest")?;
    }
    Ok(())
}

async fn field_selectors_choose_by_name(desk: Desk) -> CaseResult {
    five(&desk).await?;
    let found = desk.list_names(&SPECIMENS, "fieldSelector=metadata.name%3Dc").await?;
    same(found.join(" ").as_str(), "c", "by name")?;
    let query = format!("fieldSelector=metadata.namespace%3D{}%2Cmetadata.name!%3Dc", desk.namespace);
    let found = desk.list_names(&SPECIMENS, &query).await?;
    same(found.join(" ").as_str(), "a b d e", "by namespace and not by name")
}

async fn an_unknown_field_selector_is_refused(desk: Desk) -> CaseResult {
    refused(desk.list(&CONFIG_MAPS, "fieldSelector=data.k%3Dv").await, 400, "BadRequest").map(drop)
}

async fn pages_cover_everything_once(desk: Desk) -> CaseResult {
    five(&desk).await?;
    let mut found = Vec::new();
    let mut token = String::new();
    for _ in 0..3 {
        let page = desk.list(&SPECIMENS, &format!("limit=2&continue={token}")).await?;
        found.extend(names(&page));
        text(&page, "/metadata/continue").clone_into(&mut token);
    }
    same(token.as_str(), "", "token of the last page")?;
    same(found.join(" ").as_str(), "a b c d e", "all pages")
}

async fn a_page_tells_how_many_remain(desk: Desk) -> CaseResult {
    five(&desk).await?;
    let page = desk.list(&SPECIMENS, "limit=2").await?;
    same(&page["metadata"]["remainingItemCount"], &json!(3), "remaining")?;
    let page = desk.list(&SPECIMENS, "limit=2&labelSelector=all").await?;
    check(page["metadata"].get("remainingItemCount").is_none(), "a selected page tells, too")?;
    let page = desk.list(&SPECIMENS, "limit=5").await?;
    same(text(&page, "/metadata/continue"), "", "token of a full list")
}

async fn later_pages_show_the_revision_of_the_first(desk: Desk) -> CaseResult {
    five(&desk).await?;
    let first = desk.list(&SPECIMENS, "limit=2").await?;
    desk.post(&SPECIMENS, &specimen("bb", &json!({}))).await?;
    desk.post(&SPECIMENS, &specimen("cc", &json!({}))).await?;
    desk.delete(&SPECIMENS, "d", &json!({})).await?;
    let token = text(&first, "/metadata/continue");
    let second = desk.list(&SPECIMENS, &format!("limit=10&continue={token}")).await?;
    same(names(&second).join(" ").as_str(), "c d e", "second page")?;
    same(&version(&second)?, &version(&first)?, "version of the second page")
}

async fn a_bad_continue_token_is_refused(desk: Desk) -> CaseResult {
    refused(desk.list(&SPECIMENS, "limit=2&continue=nonsense").await, 400, "BadRequest").map(drop)
}

async fn a_list_over_all_namespaces_includes_this_one(desk: Desk) -> CaseResult {
    let label = desk.namespace.clone();
    desk.post(&CONFIG_MAPS, &config_map("a", &json!({"only": label}), &json!({}))).await?;
    let path = format!("/api/v1/configmaps?labelSelector=only%3D{label}");
    let list = desk.send("GET", &path, "application/json", None).await?;
    same(&names(&list).len(), &1, "number of items")?;
    same(text(&list, "/items/0/metadata/namespace"), desk.namespace.as_str(), "namespace")
}

async fn an_exact_list_shows_the_past(desk: Desk) -> CaseResult {
    five(&desk).await?;
    let now = version(&desk.list(&SPECIMENS, "").await?)?;
    desk.delete(&SPECIMENS, "a", &json!({})).await?;
    let past = desk.list(&SPECIMENS, &format!("resourceVersion={now}&resourceVersionMatch=Exact")).await?;
    same(names(&past).join(" ").as_str(), "a b c d e", "names")?;
    same(&version(&past)?, &now, "version")
}

async fn a_list_may_be_newer_than_asked(desk: Desk) -> CaseResult {
    five(&desk).await?;
    let old = version(&desk.list(&SPECIMENS, "").await?)?;
    let made = desk.post(&SPECIMENS, &specimen("f", &json!({}))).await?;
    let query = format!("resourceVersion={}&resourceVersionMatch=NotOlderThan", version(&made)?);
    let list = desk.list(&SPECIMENS, &query).await?;
    same(&names(&list).len(), &6, "items")?;
    check(version(&list)? > old, "the list is old")
}

const METADATA: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
const METADATA_LIST: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";

async fn metadata_alone_can_be_read(desk: Desk) -> CaseResult {
    five(&desk).await?;
    let one = desk.get_as(&desk.path(&SPECIMENS, "a"), METADATA).await?;
    same(text(&one, "/kind"), "PartialObjectMetadata", "kind")?;
    same(text(&one, "/metadata/name"), "a", "name")?;
    check(one.get("spec").is_none(), "the spec is there")?;
    let list = desk.get_as(&desk.path(&SPECIMENS, ""), METADATA_LIST).await?;
    same(text(&list, "/kind"), "PartialObjectMetadataList", "kind of the list")?;
    same(&names(&list).len(), &5, "items")?;
    check(list.pointer("/items/0/spec").is_none_or(Value::is_null), "the spec is in the list")
}

async fn an_empty_list_is_a_list(desk: Desk) -> CaseResult {
    let list = desk.list(&SPECIMENS, "").await?;
    same(&list["items"], &json!([]), "items")?;
    check(version(&list)? > 0, "it has no version")
}

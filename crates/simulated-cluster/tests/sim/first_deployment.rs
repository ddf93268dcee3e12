//! The first deployment of docs/nodeset.md, run as the page has it: its commands and manifests.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use api::dataplane::{NodeSet, Service};
use e2e::journey::RUN;
use e2e::{SOON, cells, run};
use simulated_cluster::{Host, Visit};

use crate::world::World;

const PAGE: &str = include_str!("../../../../docs/nodeset.md");
const SECTION: &str = "## A first deployment\n";

/// What of the page differs in the test: hosts of its own, files for the page's placeholders, and a
/// limit below that of the test.
const REPLACED: [(&str, &str); 6] = [
    ("edpm-compute-", "first-deployment-"),
    ("192.168.122.100", "192.168.122.240"),
    ("192.168.122.101", "192.168.122.241"),
    ("KEYFILE", "key"),
    ("CAFILE", "ca.pem"),
    ("--timeout=1h", "--timeout=5m"),
];

/// Returns the section of the page as it is run in a namespace.
fn section(namespace: &str) -> Result<String> {
    let (_, rest) = PAGE.split_once(SECTION).context("the page has no such section")?;
    let text = rest.split("\n## ").next().unwrap_or_default();
    let replaced = REPLACED.iter().fold(text.to_owned(), |it, (from, to)| it.replace(from, to));
    Ok(replaced.replace("-n openstack ", &format!("-n {namespace} ")))
}

/// Returns the code blocks of a language, each with the file name that stands before it.
fn blocks(text: &str, language: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut parts = text.split("```");
    while let (Some(before), Some(block)) = (parts.next(), parts.next()) {
        let Some(content) = block.strip_prefix(language) else { continue };
        let indent = before.len() - before.trim_end_matches(' ').len();
        let lines = content.lines().map(|it| it.get(indent..).unwrap_or_default());
        let names = before.split('`').skip(1).step_by(2);
        let name = names
            .filter(|it| it.rsplit_once('.').is_some_and(|(_, end)| end == "yaml"))
            .last()
            .unwrap_or_default();
        found.push((name.to_owned(), lines.skip(1).collect::<Vec<_>>().join("\n")));
    }
    found
}

/// Writes the files of the section, and runs its commands in their folder.
async fn follow(section: &str, folder: &Path, key: &str) -> Result<()> {
    fs::create_dir_all(folder)?;
    fs::write(folder.join("key"), key)?;
    fs::write(folder.join("ca.pem"), "the authorities of the control plane\n")?;
    for (name, content) in blocks(section, "yaml") {
        ensure!(!name.is_empty(), "no name for the file:\n{content}");
        fs::write(folder.join(name), content)?;
    }
    let commands: Vec<String> = blocks(section, "sh").into_iter().map(|it| it.1).collect();
    let script = format!("set -eu\ncd '{}'\n{}", folder.display(), commands.join("\n"));
    let arguments = ["-c", script.as_str()];
    let following = tokio::time::timeout(RUN, run("sh", &arguments));
    following.await.context("the commands do not end")?.map(drop)
}

/// Asserts that a host had each listed service once, in order, with the images of the page.
fn assert_deployed(host: &Host, set: &NodeSet) {
    let visits = host.visits();
    let services: Vec<&String> = visits.iter().map(|it| &it.service).collect();
    assert_eq!(services, set.spec.services.iter().collect::<Vec<_>>());
    for image in ["edpm_nova_compute_image", "edpm_nova_libvirt_image"] {
        let is_given = |it: &Visit| it.variables.contains_key(image);
        assert!(visits.iter().all(is_given), "{image} is no variable");
    }
}

#[tokio::test]
async fn the_first_deployment_of_the_page_runs_from_its_first_line_to_its_last() -> Result<()> {
    let ns = World::new("first-deployment").await?;
    let first = ns.host("first-deployment-0", "192.168.122.240");
    let second = ns.host_like(&first, "first-deployment-1", "192.168.122.241");
    cells::create_secrets(&ns).await?;
    cells::create(&ns).await?;
    let folder = std::env::temp_dir().join(&ns.name);
    follow(&section(&ns.name)?, &folder, &first.ssh_secret()[0].1).await?;
    fs::remove_dir_all(&folder)?;
    let set = ns.api::<NodeSet>().get("openstack-edpm").await?;
    for host in [&first, &second] {
        assert_deployed(host, &set);
    }
    // The simulated hosts run any playbook; ours has to have them.
    for service in &set.spec.services {
        ns.good::<Service>(service, &["PlaybookIncluded"], SOON).await?;
    }
    ns.done().await
}

//! Manifests with upstream's fields are accepted by the API server unchanged.

use std::path::Path;

use anyhow::{Context as _, Result};
use e2e::run;
use serde_json::Value;

use crate::world::World;

/// The folder of the manifests.
const MANIFESTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/manifests");
const ALL: [&str; 4] = ["service.yaml", "node-set.yaml", "empty-values.yaml", "deployment.yaml"];

/// Returns the paths at which `kept` differs from `written`: fields may be added, but none may be
/// lost.
fn lost(path: &str, written: &Value, kept: &Value) -> Vec<String> {
    match (written, kept) {
        (Value::Object(all), _) => all
            .iter()
            .flat_map(|(name, it)| lost(&format!("{path}.{name}"), it, &kept[name]))
            .collect(),
        (Value::Array(all), Value::Array(others)) if all.len() == others.len() => {
            let pairs = all.iter().zip(others).enumerate();
            pairs
                .flat_map(|(idx, (it, other))| lost(&format!("{path}[{idx}]"), it, other))
                .collect()
        }
        _ if written == kept => Vec::new(),
        _ => vec![format!("{path}: {written} became {kept}")],
    }
}

async fn json(arguments: &[&str]) -> Result<Value> {
    let text = run("kubectl", arguments).await?;
    serde_json::from_str(&text).with_context(|| text)
}

#[tokio::test]
async fn manifests_as_upstreams_users_write_them_apply_unchanged() -> Result<()> {
    let ns = World::new("manifests").await?;
    for name in ALL {
        let file = Path::new(MANIFESTS).join(name);
        let file = file.to_str().context("a path in UTF-8")?;
        let apply =
            |how| ["apply", "-n", &ns.name, "-f", file, "--validate=strict", "-o", "json", how];
        let written = json(&apply("--dry-run=client")).await?;
        let kept = json(&apply("--dry-run=server")).await?;
        assert_eq!(lost("spec", &written["spec"], &kept["spec"]), [""; 0], "{name}");
    }
    Ok(())
}

#[tokio::test]
async fn objects_without_spec_are_taken_by_the_api_server() -> Result<()> {
    let ns = World::new("empty-objects").await?;
    let file = std::env::temp_dir().join(format!("{}.yaml", ns.name));
    for (api, kind) in [
        ("ansibleee", "OpenStackAnsibleEE"),
        ("dataplane", "OpenStackDataPlane"),
        ("dataplane", "OpenStackDataPlaneNode"),
        ("dataplane", "OpenStackDataPlaneRole"),
    ] {
        for spec in ["", "spec:\n"] {
            let text = format!(
                "apiVersion: {api}.openstack.org/v1beta1\nkind: {kind}\nmetadata: {{name: empty}}\n{spec}"
            );
            std::fs::write(&file, text)?;
            let file = file.to_str().context("a path in UTF-8")?;
            let arguments = ["apply", "-n", &ns.name, "-f", file, "-o", "json", "--dry-run=server"];
            let kept = json(&arguments).await.with_context(|| format!("{kind} {spec:?}"))?;
            assert!(kept["spec"].is_object(), "{kind}: {kept}");
        }
    }
    std::fs::remove_file(&file)?;
    Ok(())
}

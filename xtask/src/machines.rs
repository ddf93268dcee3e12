//! The machines of the lab's Ironic: a deployed node runs as a pod, which the real cloud-init
//! configures by the config drive alone.

mod decide;
mod drive;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};
use decide::{Node, Pod, Step};
use serde_json::Value;

use crate::{controlplane, hosts, lab, packages, paths, sh};

/// The name of Ironic's database, the only place where config drives are readable.
const DATABASE: &str = "ironic";
/// The polling interval, because Ironic does not notify of state changes.
const PACE: Duration = Duration::from_secs(2);
/// The file that is written after each successful iteration, below the lab's state.
pub(crate) const LOOKED: &str = "run/machines.looked";
/// The directory with the files of each deployment, below the lab's state.
const FOLDER: &str = "machines";

const DEPLOYED: &str = "SELECT JSON_OBJECT('uuid', uuid, 'name', COALESCE(name, uuid), \
    'since', CAST(UNIX_TIMESTAMP(provision_updated_at) AS UNSIGNED), 'power', power_state) \
    FROM nodes WHERE provision_state = 'active' AND JSON_EXISTS(instance_info, '$.configdrive') \
    ORDER BY uuid";

/// Installs the missing programs.
pub(crate) fn tools() -> Result<()> {
    let has_reader = sh::succeeds(Command::new("xorriso").arg("-version"));
    packages::install(if has_reader { &[] } else { &["xorriso"] })
}

/// Runs the machines until it is ended; prints each error once.
pub(crate) fn run(image: &str) -> Result<()> {
    let machines = Machines { env: lab::env(), image };
    let mut at_rest = None;
    let mut trouble = String::new();
    loop {
        match machines.turn(&mut at_rest) {
            Ok(()) => {
                trouble.clear();
                fs::write(paths::state().join(LOOKED), "")?;
            }
            Err(error) if format!("{error:#}") != trouble => {
                trouble = format!("{error:#}");
                println!("{trouble}");
            }
            Err(_) => {}
        }
        std::thread::sleep(PACE);
    }
}

struct Machines<'a> {
    env: lab::Env,
    /// The image that they boot.
    image: &'a str,
}

impl Machines<'_> {
    /// Runs one iteration: reads Ironic's nodes and carries out the next steps. `at_rest` holds the
    /// nodes when no step was left.
    fn turn(&self, at_rest: &mut Option<Vec<Node>>) -> Result<()> {
        let nodes = self.nodes()?;
        if at_rest.as_ref() == Some(&nodes) {
            return Ok(());
        }
        *at_rest = None;
        let (pods, disks) = (self.pods()?, disks(&folder())?);
        let steps = decide::decide(&nodes, &pods, &disks);
        // An error of one machine does not stop the others.
        let ends: Vec<Result<()>> = steps.iter().map(|it| self.carry_out(it)).collect();
        ends.into_iter().collect::<Result<()>>()?;
        if steps.is_empty() && pods.iter().all(|it| !it.is_ending) {
            *at_rest = Some(nodes);
        }
        Ok(())
    }

    /// Returns the nodes that Ironic has deployed.
    fn nodes(&self) -> Result<Vec<Node>> {
        self.rows(DEPLOYED)?.iter().map(|it| node(it).context("a row of Ironic's nodes")).collect()
    }

    /// Returns the config drive that Ironic has for a node.
    fn drive(&self, node: &Node) -> Result<Value> {
        let query = format!(
            "SELECT JSON_EXTRACT(instance_info, '$.configdrive') FROM nodes WHERE uuid = '{}'",
            node.uuid
        );
        self.rows(&query)?.pop().context("the machine has no drive any more")
    }

    /// Returns the rows of a query that selects one JSON column.
    fn rows(&self, query: &str) -> Result<Vec<Value>> {
        let mut exec = self.env.kubectl();
        exec.args(["-n", controlplane::NAMESPACE, "exec", "deployment/mariadb", "-c", "mariadb"]);
        exec.args(["--", "mariadb", "--batch", "--raw", "--skip-column-names", DATABASE, "-e"]);
        let rows = sh::run(exec.arg(query))?;
        // The parser's error would contain the row, which may be a drive with secrets.
        rows.lines().map(|it| serde_json::from_str(it).ok().context("a row is no JSON")).collect()
    }

    fn pods(&self) -> Result<Vec<Pod>> {
        let mut get = self.env.kubectl();
        get.args(["-n", hosts::NAMESPACE, "get", "pods", "-l", "app=edpm-machine", "-o", "json"]);
        let list: Value = serde_json::from_str(&sh::run(&mut get)?)?;
        Ok(list["items"].as_array().into_iter().flatten().map(pod).collect())
    }

    fn carry_out(&self, step: &Step<'_>) -> Result<()> {
        match step {
            Step::Halt(pod) => {
                println!("{pod} ends");
                let mut delete = self.env.kubectl();
                delete.args(["-n", hosts::NAMESPACE, "delete", "pod", pod, "--wait=false"]);
                sh::run(&mut delete).map(drop)
            }
            Step::Wipe(deployment) => {
                println!("deployment {deployment} is wiped");
                let folder = folder().join(deployment);
                fs::remove_dir_all(&folder).with_context(|| format!("wipe {}", folder.display()))
            }
            Step::Boot(node) => self.boot(node).with_context(|| format!("boot {}", node.name)),
        }
    }

    fn boot(&self, node: &Node) -> Result<()> {
        let folder = folder().join(node.deployment());
        let drive = folder.join("drive");
        if drive.exists() {
            fs::remove_dir_all(&drive)?;
        }
        drive::unpack(&self.drive(node)?, &drive).context("unpack its config drive")?;
        controlplane::apply(&self.env, &manifest(node, self.image, &folder)?)?;
        println!("{} boots, deployment {}", node.pod(), node.deployment());
        Ok(())
    }
}

fn folder() -> PathBuf {
    paths::state().join(FOLDER)
}

/// Returns the deployments that have files in `folder`.
fn disks(folder: &Path) -> Result<Vec<String>> {
    if !folder.exists() {
        return Ok(Vec::new());
    }
    let names = fs::read_dir(folder)?.map(|it| Ok(it?.file_name().to_string_lossy().into_owned()));
    names.collect()
}

fn node(row: &Value) -> Option<Node> {
    let text = |field: &str| row[field].as_str().map(str::to_owned);
    let (uuid, name, since) = (text("uuid")?, text("name")?, row["since"].as_u64()?);
    Some(Node { uuid, name, since, is_on: row["power"] == "power on" })
}

fn pod(object: &Value) -> Pod {
    let metadata = &object["metadata"];
    let text = |it: &Value| it.as_str().unwrap_or_default().to_owned();
    Pod {
        name: text(&metadata["name"]),
        deployment: text(&metadata["annotations"]["lab/deployment"]),
        is_ending: metadata["deletionTimestamp"].is_string(),
    }
}

fn manifest(node: &Node, image: &str, folder: &Path) -> Result<String> {
    let values = BTreeMap::from([
        ("name".to_owned(), node.pod()),
        ("namespace".to_owned(), hosts::NAMESPACE.to_owned()),
        ("deployment".to_owned(), node.deployment()),
        ("image".to_owned(), image.to_owned()),
        ("folder".to_owned(), folder.display().to_string()),
    ]);
    controlplane::fill(include_str!("../../lab/baremetal/machine.yaml"), &values)
}

#[cfg(test)]
mod tests {
    use api::yaml;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_row_and_the_pod_made_of_it_tell_of_the_same_deployment() {
        let row =
            json!({"uuid": "u", "name": "rack1-u7", "since": 1_700_000_000, "power": "power on"});
        let node = node(&row).unwrap();
        assert!(node.is_on);
        let manifest = manifest(&node, "image", Path::new("/machines/u")).unwrap();
        let object: Value = yaml::from_str(&manifest).unwrap();
        let expected = Pod {
            name: "machine-rack1-u7".to_owned(),
            deployment: "u-1700000000".to_owned(),
            is_ending: false,
        };
        assert_eq!(pod(&object), expected);
        assert_eq!(object["spec"]["volumes"][4]["hostPath"]["path"], "/machines/u/drive");
        assert!(super::node(&json!({"uuid": "u"})).is_none());
    }
}

//! A host that has lost its identity in nova, and an operator that is killed meanwhile.

use anyhow::Result;
use api::ansibleee::{AnsibleEe, HostFailure};
use api::nova::ExternalCompute;
use kube::ResourceExt;
use operator_core::host_identity::MISSING;
use serde_json::json;
use simulated_cluster::{Behaviour, Host, Operator};

use super::health::deployed;
use super::{READ, is_up};
use crate::own::Own;

/// How the play of nova ends on a host without its identity.
fn lost() -> Behaviour {
    Behaviour::Failed(HostFailure {
        task: format!("osp.edpm.edpm_nova : {MISSING}"),
        path: "/usr/share/ansible/collections/ansible_collections/osp/edpm/roles/edpm_nova/tasks/\
               identity.yml:30"
            .to_owned(),
        message: "/var/lib/nova/compute_id is missing".to_owned(),
        ..HostFailure::default()
    })
}

/// What each run of nova was given since the compute was deployed again, in their order: the recorded
/// identity, and whether it may be restored.
async fn given(own: &Own, host: &Host) -> Result<Vec<(String, bool)>> {
    let mut runs = own.list::<AnsibleEe>().await?;
    runs.retain(|it| {
        let is_of_host = it.spec.hosts.iter().any(|it| it.name == host.name);
        is_of_host && it.spec.extra_vars.contains_key("edpm_nova_compute_id")
    });
    runs.sort_by_key(|it| it.creation_timestamp().map(|it| it.0));
    let variables = runs.iter().map(|it| {
        let variable = |name: &str| it.spec.extra_vars.get(name).cloned().unwrap_or_default();
        let id = variable("edpm_nova_compute_id").as_str().unwrap_or_default().to_owned();
        (id, variable("edpm_nova_restore_compute_id") == json!(true))
    });
    Ok(variables.collect())
}

#[tokio::test]
async fn a_host_without_its_identity_gets_it_back_once_nova_has_no_servers_there() -> Result<()> {
    let (own, host) = deployed("api-identity").await?;
    let nova = &own.sim.nova;
    let server = nova.boot("one", &host.name)?;
    nova.report(&host.name, false);
    host.behave("nova", lost());
    own.annotate::<ExternalCompute>(&host.name, "nova.openstack.org/redeploy", "1").await?;
    let words = [&*server, "/var/lib/nova/compute_id"];
    let held = own
        .reports::<ExternalCompute>(&host.name, "Ready", "IdentityHasServers", &words, READ)
        .await?;
    let id = held.status.and_then(|it| it.compute_id).unwrap_or_default();
    own.replace(&[Operator::Nova]).await?;
    nova.wait_for_requests("GET /v2.1/servers", 2).await?;
    assert_eq!(given(&own, &host).await?, [(id.clone(), false)], "nothing runs under a server");
    host.behave("nova", Behaviour::Done);
    nova.delete_server(&server);
    own.good::<ExternalCompute>(&host.name, &["Ready"], READ * 2).await?;
    is_up(&own, &host).await?;
    assert_eq!(given(&own, &host).await?.last(), Some(&(id, true)));
    own.done()
}

//! What a single command reads beside the world: files of a compute, Jobs and pods.

use std::collections::BTreeMap;

use common::api::ansibleee::AnsibleEe;
use common::api::dataplane::Service;
use dataplane_operator::group::faults::sources_of;
use dataplane_operator::inputs::service_type;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{ConfigMap, Pod, Secret};
use kube::ResourceExt;
use kube::api::ListParams;
use nova_operator::annotations::DEFAULT_CONFIG;
use nova_operator::compute::build::NOVA_TYPE;
use nova_operator::compute::config::secret_name;
use nova_operator::conf::DEFAULT_FILE;

use crate::cluster::{Cluster, Read};
use crate::diff::{DefaultConfig, Options};
use crate::error::{Error, Result};
use crate::host::{Host, Stage};
use crate::logs;
use crate::named::Named;
use crate::options::{File, Object, is_read};
use crate::trace::service::{Given, object};
use crate::world::World;

/// The label by which the Job controller's pods are found.
const JOB_LABEL: &str = "batch.kubernetes.io/job-name";

/// What the options of a node's compute are made from; nothing where it has no compute.
pub async fn options<'a>(
    cluster: &Cluster,
    world: &'a World,
    node: &str,
) -> Result<Option<Options<'a>>> {
    let namespace = cluster.namespace.as_str();
    let Some(compute) = world.compute(namespace, node) else { return Ok(None) };
    let of_node = world.nodes.iter().find(|it| it.name_any() == node);
    let role = of_node.and_then(|it| world.role(namespace, it.spec.role.as_deref()?));
    let named = role.and_then(|it| it.annotations().get(DEFAULT_CONFIG));
    let default_config = match named.filter(|it| !it.is_empty()) {
        Some(name) => {
            let text = match cluster.read::<ConfigMap>(name).await? {
                Read::Found(object) => default_text(&object).map_or(Read::Missing, Read::Found),
                Read::Missing => Read::Missing,
                Read::Refused(why) => Read::Refused(why),
            };
            Some(DefaultConfig { name: name.clone(), text })
        }
        None => None,
    };
    let secret = cluster.read(&secret_name(&compute.name_any())).await?;
    Ok(Some(Options { compute, default_config, secret }))
}

/// Key and text of a default configuration: the file's own name, or the only key.
fn default_text(object: &ConfigMap) -> Option<(String, String)> {
    let data = object.data.as_ref()?;
    let pair = |(key, text): (&String, &String)| (key.clone(), text.clone());
    let mut all = data.iter();
    match (data.get_key_value(DEFAULT_FILE), all.next(), all.next()) {
        (Some(own), ..) => Some(pair(own)),
        (None, Some(only), None) => Some(pair(only)),
        (None, ..) => None,
    }
}

/// Job and pod of the newest run of a service, where it is kept and has them.
pub async fn job_of(
    cluster: &Cluster,
    host: &Host<'_>,
    stage: &Stage<'_>,
    service: &str,
) -> Result<(Option<Read<Job>>, Option<Read<Pod>>)> {
    let run = host.progress(stage).into_iter().find(|it| it.service == service);
    let Some((run, job)) = run.and_then(|it| it.run).and_then(|it| Some((it, logs::job_of(it)?)))
    else {
        return Ok((None, None));
    };
    Ok((Some(cluster.read(job).await?), Some(pod_of(cluster, run).await?)))
}

/// The service by which a host gets nova's files: one of type nova that is listed for it, else one
/// that sets the option; nothing where there is none.
pub async fn given(cluster: &Cluster, host: &Host<'_>, named: &Named) -> Result<Option<Given>> {
    let listed = |it: &Service| {
        let name = it.name_any();
        host.stages.iter().any(|stage| stage.wanted.contains(&name.as_str()))
    };
    let mut services = cluster.list_known::<Service>(false).await?;
    services.retain(|it| service_type(&it.spec, &it.name_any()) == NOVA_TYPE);
    services.sort_by_key(|it| !listed(it));
    for service in services {
        let is_listed = listed(&service);
        let given = sources(cluster, service).await?;
        let sets = given.files().any(|it| !named.entries(&it.entries).is_empty());
        if !is_listed && !sets {
            continue;
        }
        let beside = if sets { vec![] } else { beside(cluster, &given, named).await? };
        return Ok(Some(Given { beside, ..given }));
    }
    Ok(None)
}

async fn sources(cluster: &Cluster, service: Service) -> Result<Given> {
    let mut sources = Vec::new();
    for source in sources_of(&service.spec) {
        let object = object(&source);
        let content = if source.is_secret {
            let read = cluster.read::<Secret>(&source.name).await?;
            read.map(|it| keys(cluster, &object, &it.data.unwrap_or_default(), |it| &it.0))
        } else {
            let read = cluster.read::<ConfigMap>(&source.name).await?;
            read.map(|it| of_config_map(cluster, &it))
        };
        sources.push((source, content));
    }
    Ok(Given { service, sources, beside: vec![] })
}

/// Keys of ConfigMaps that the service does not name and that set the option.
async fn beside(cluster: &Cluster, given: &Given, named: &Named) -> Result<Vec<File>> {
    let all = match cluster.list_known::<ConfigMap>(false).await {
        // Not everybody may look at all of them.
        Err(Error::Server { code: 401 | 403, .. }) => vec![],
        all => all?,
    };
    let is_named = |it: &ConfigMap| {
        given.sources.iter().any(|(source, _)| !source.is_secret && source.name == it.name_any())
    };
    let others = all.iter().filter(|it| !is_named(it));
    let files = others.flat_map(|it| of_config_map(cluster, it));
    Ok(files.filter(|it| is_read(&it.name) && !named.entries(&it.entries).is_empty()).collect())
}

fn of_config_map(cluster: &Cluster, config_map: &ConfigMap) -> Vec<File> {
    let object = Object { is_secret: false, name: config_map.name_any() };
    let texts = config_map.data.clone().unwrap_or_default();
    let mut files = keys(cluster, &object, &texts, String::as_bytes);
    let binary = config_map.binary_data.clone().unwrap_or_default();
    files.extend(keys(cluster, &object, &binary, |it| &it.0));
    files
}

fn keys<T>(
    cluster: &Cluster,
    object: &Object,
    data: &BTreeMap<String, T>,
    bytes: fn(&T) -> &[u8],
) -> Vec<File> {
    let namespace = &cluster.namespace;
    data.iter().map(|(key, it)| File::of_key(object, namespace, key, bytes(it))).collect()
}

/// The pod that the run's status names, else the newest one of its Job.
pub async fn pod_of(cluster: &Cluster, run: &AnsibleEe) -> Result<Read<Pod>> {
    if let Some(name) = run.status.as_ref().and_then(|it| it.pod_name.as_deref()) {
        match cluster.read(name).await? {
            Read::Missing => {}
            told @ (Read::Found(_) | Read::Refused(_)) => return Ok(told),
        }
    }
    let Some(job) = logs::job_of(run) else { return Ok(Read::Missing) };
    let params = ListParams::default().labels(&format!("{JOB_LABEL}={job}"));
    let pods = cluster.api::<Pod>().list(&params).await.map_err(|it| cluster.error(&it))?;
    let newest = pods.items.into_iter().max_by_key(|it| it.creation_timestamp().map(|it| it.0));
    Ok(newest.map_or(Read::Missing, Read::Found))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_configuration_is_the_files_own_key_or_the_only_one() {
        let key = |keys: &[&str]| {
            let data = keys.iter().map(|it| ((*it).to_owned(), String::new())).collect();
            let object = ConfigMap { data: Some(data), ..ConfigMap::default() };
            default_text(&object).map(|it| it.0)
        };
        assert_eq!(key(&["a.conf"]).as_deref(), Some("a.conf"));
        assert_eq!(key(&["a.conf", DEFAULT_FILE]).as_deref(), Some(DEFAULT_FILE));
        assert_eq!(key(&["a.conf", "b.conf"]), None);
        assert_eq!(key(&[]), None);
    }
}

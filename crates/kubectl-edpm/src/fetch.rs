//! Reads that only some commands need: configuration sources of a compute or service, Jobs and
//! pods.

use std::collections::BTreeSet;
use std::path::Path;

use api::ansibleee::AnsibleEe;
use api::dataplane::Service;
use api::dataplane::service::DEFAULT_SERVICE_LABEL as DEFAULT_LABEL;
use api::shared::SourceKind;
use api::yaml;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{ConfigMap, Pod, Secret};
use kube::ResourceExt;
use kube::api::ListParams;
use nova_config::annotations::DEFAULT_CONFIG;
use nova_config::conf::DEFAULT_FILE;
use nova_config::rendered_secret::compute_secret_name;
use nova_config::services::NOVA_TYPE;
use operator_core::data_sources::{NamedSource as Source, service_type, sources_of};
use serde_json::Value;

use crate::cluster::{Cluster, Read};
use crate::config_files::{Content, File, is_read};
use crate::error::{Error, Result};
use crate::host::Host;
use crate::logs;
use crate::option_names::OptionNames;
use crate::option_sources::{ConfigPath, DefaultConfig, Options, ServiceSources};
use crate::stage::Stage;
use crate::trace::inputs::{Generated, Snippet};

/// The label that the Job controller sets on its pods.
const JOB_LABEL: &str = "batch.kubernetes.io/job-name";

/// Returns the compute of a host with the sources of its configuration, or `None` when the operator
/// deploys no compute there.
pub async fn options<'a>(cluster: &Cluster, host: &Host<'a>) -> Result<Option<ConfigPath<'a>>> {
    let Some(compute) = host.compute.filter(|it| !it.is_observed()) else { return Ok(None) };
    let of_role = || host.role.and_then(|it| it.annotations().get(DEFAULT_CONFIG));
    let named = host.node.annotations().get(DEFAULT_CONFIG).or_else(of_role);
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
    let secret = cluster.read(&compute_secret_name(&compute.name_any())).await?;
    Ok(Some(ConfigPath::Compute(Box::new(Options { compute, default_config, secret }))))
}

/// Returns the key and text of a default configuration: [`DEFAULT_FILE`], or the only key. Returns
/// `None` when there are several other keys or none.
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

/// Returns the Job and pod of the newest run of a service; missing too when the run is not kept or
/// has no Job yet.
pub async fn job_of(
    cluster: &Cluster,
    host: &Host<'_>,
    stage: &Stage<'_>,
    service: &str,
) -> Result<(Read<Job>, Read<Pod>)> {
    let run = host.service(stage, service).and_then(|it| it.run);
    let Some((run, job)) = run.and_then(|it| Some((it, logs::job_of(it)?))) else {
        return Ok((Read::Missing, Read::Missing));
    };
    Ok((cluster.read(job).await?, pod_of(cluster, run).await?))
}

/// Returns the nova service of a host, in order of preference: a listed one that sets the option, a
/// user's own that sets it, a listed one, a default service that sets it. Returns `None` when no
/// service qualifies.
pub async fn given(
    cluster: &Cluster,
    host: &Host<'_>,
    named: &OptionNames,
    file: Option<&str>,
) -> Result<Option<ConfigPath<'static>>> {
    let all = candidates(cluster, host).await?;
    let rank = |it: &ServiceSources| {
        let is_default = it.service.labels().contains_key(DEFAULT_LABEL);
        match (it.sets(named, file), it.is_listed, is_default) {
            (true, true, _) => Some(0),
            (true, false, false) => Some(1),
            (false, true, _) => Some(2),
            (true, false, true) => Some(3),
            (false, false, _) => None,
        }
    };
    // Among equals the first listed one wins, as only that one runs.
    let chosen = all.into_iter().filter_map(|it| Some((rank(&it)?, it))).min_by_key(|it| it.0);
    let Some((_, mut given)) = chosen else { return Ok(None) };
    if !given.sets(named, None) {
        given.beside = beside(cluster, &given, named).await?;
    }
    Ok(Some(ConfigPath::Service(Box::new(given))))
}

/// Returns the first service of type nova that the host lists.
pub async fn listed(cluster: &Cluster, host: &Host<'_>) -> Result<Option<ConfigPath<'static>>> {
    let listed = candidates(cluster, host).await?.into_iter().find(|it| it.is_listed);
    Ok(listed.map(|it| ConfigPath::Service(Box::new(it))))
}

/// Returns all services of type nova with their sources, in the order of the host's list.
async fn candidates(cluster: &Cluster, host: &Host<'_>) -> Result<Vec<ServiceSources>> {
    let all = cluster.list_known::<Service>(false).await?;
    let known: BTreeSet<String> = all.iter().map(ResourceExt::name_any).collect();
    let listed = host.listed();
    let absent: Vec<String> =
        listed.iter().filter(|it| !known.contains(**it)).map(|it| (*it).to_owned()).collect();
    let position = |it: &Service| {
        let name = it.name_any();
        listed.iter().position(|it| *it == name).unwrap_or(listed.len())
    };
    let is_nova = |it: &Service| service_type(&it.spec, &it.name_any()) == NOVA_TYPE;
    let mut services: Vec<Service> = all.into_iter().filter(is_nova).collect();
    services.sort_by_key(position);
    let first = services.first().map(ResourceExt::name_any);
    let mut found = Vec::new();
    for service in services {
        let is_listed = position(&service) < listed.len();
        let rival = first.clone().filter(|it| is_listed && *it != service.name_any());
        let sources = sources(cluster, &service).await?;
        let absent = absent.clone();
        found.push(ServiceSources {
            service,
            sources,
            is_listed,
            conflicting_service: rival,
            absent,
            beside: vec![],
        });
    }
    Ok(found)
}

async fn sources(cluster: &Cluster, service: &Service) -> Result<Vec<(Source, Read<Content>)>> {
    let namespace = &cluster.namespace;
    let mut sources = Vec::new();
    for source in sources_of(&service.spec) {
        let content = if source.kind == SourceKind::Secret {
            let read = cluster.read::<Secret>(&source.name).await?;
            read.map(|it| Content::of_secret(&it, namespace))
        } else {
            let read = cluster.read::<ConfigMap>(&source.name).await?;
            read.map(|it| Content::of_config_map(&it, namespace))
        };
        sources.push((source, content));
    }
    Ok(sources)
}

/// Returns the keys of ConfigMaps that set the option but that the service does not reference.
async fn beside(
    cluster: &Cluster,
    given: &ServiceSources,
    named: &OptionNames,
) -> Result<Vec<File>> {
    let all = match cluster.list_known::<ConfigMap>(false).await {
        // Not every user may list ConfigMaps.
        Err(Error::Server(status)) if matches!(status.code, 401 | 403) => vec![],
        all => all?,
    };
    let is_named = |it: &ConfigMap| {
        given
            .sources
            .iter()
            .any(|(source, _)| source.kind != SourceKind::Secret && source.name == it.name_any())
    };
    let others = all.iter().filter(|it| !is_named(it));
    let files = others.flat_map(|it| Content::of_config_map(it, &cluster.namespace).files);
    Ok(files.filter(|it| is_read(&it.name) && named.is_in(it)).collect())
}

/// Reads the ConfigMaps of a file of generated manifests, which may not have been applied.
pub fn generated(path: &Path, namespace: &str) -> Result<Generated> {
    let Snippet { path, text } = snippet(path)?;
    let documents = yaml::documents::<Value>(&text).map_err(|it| unreadable(&path, &it))?;
    let config_maps = documents.into_iter().filter(|it| it["kind"] == "ConfigMap");
    let read = config_maps.map(serde_json::from_value::<ConfigMap>);
    let all: Vec<ConfigMap> =
        read.collect::<std::result::Result<_, _>>().map_err(|it| unreadable(&path, &it))?;
    let files = all.iter().flat_map(|it| Content::of_config_map(it, namespace).files).collect();
    Ok(Generated { path, files })
}

/// Reads a file of the user.
pub fn snippet(path: &Path) -> Result<Snippet> {
    let shown = path.display().to_string();
    let text = std::fs::read_to_string(path).map_err(|it| unreadable(&shown, &it))?;
    Ok(Snippet { path: shown, text })
}

fn unreadable(path: &str, cause: &dyn std::fmt::Display) -> Error {
    Error::message(format!("{path}: {cause}"))
}

/// Returns the pod that the status of the run names, else the newest pod of its Job.
pub async fn pod_of(cluster: &Cluster, run: &AnsibleEe) -> Result<Read<Pod>> {
    if let Some(name) = run.status.as_ref().and_then(|it| it.pod_name.as_deref()) {
        match cluster.read(name).await? {
            Read::Missing => {}
            read @ (Read::Found(_) | Read::Refused(_)) => return Ok(read),
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

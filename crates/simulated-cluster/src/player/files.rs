//! The files that a pod mounts, resolved as a kubelet does, and what is missing.

use std::collections::BTreeMap;

use anyhow::Result;
use k8s_openapi::api::core::v1::{
    ConfigMap, Container, EnvVar, KeyToPath, Pod, Secret, Volume, VolumeMount, VolumeProjection,
};
use kube::{Api, Client, ResourceExt as _};

/// Key → content.
type Content = BTreeMap<String, String>;

/// Returns the files of a container by path. The inner error is the kubelet's message about a
/// missing object.
pub(super) async fn mounted(
    client: &Client,
    pod: &Pod,
    container: &Container,
) -> Result<Result<BTreeMap<String, String>, String>> {
    let mut contents = BTreeMap::new();
    for volume in pod.spec.iter().flat_map(|it| it.volumes.iter().flatten()) {
        match content(client, pod, volume).await? {
            Ok(content) => contents.insert(volume.name.clone(), content),
            Err(missing) => return Ok(Err(missing)),
        };
    }
    let mut files = BTreeMap::new();
    for mount in container.volume_mounts.iter().flatten() {
        if let Some(content) = contents.get(&mount.name) {
            files.extend(placed(mount, content));
        }
    }
    Ok(Ok(files))
}

/// Returns the files of one mount.
fn placed(mount: &VolumeMount, content: &Content) -> Vec<(String, String)> {
    let path = mount.mount_path.trim_end_matches('/');
    match &mount.sub_path {
        Some(key) => content.get(key).map(|it| (path.to_owned(), it.clone())).into_iter().collect(),
        None => content.iter().map(|(key, it)| (format!("{path}/{key}"), it.clone())).collect(),
    }
}

async fn content(client: &Client, pod: &Pod, volume: &Volume) -> Result<Result<Content, String>> {
    let namespace = pod.namespace().unwrap_or_default();
    if let Some(source) = &volume.config_map {
        let found = config_map(client, &namespace, &source.name).await?;
        let is_optional = source.optional == Some(true);
        return Ok(chosen(found, source.items.as_deref(), is_optional, || {
            format!("configmap \"{}\" not found", source.name)
        }));
    }
    if let Some(source) = &volume.secret {
        let name = source.secret_name.clone().unwrap_or_default();
        let found = secret(client, &namespace, &name).await?;
        let is_optional = source.optional == Some(true);
        return Ok(chosen(found, source.items.as_deref(), is_optional, || {
            format!("secret \"{name}\" not found")
        }));
    }
    if let Some(sources) = volume.projected.as_ref().and_then(|it| it.sources.as_ref()) {
        return projected(client, &namespace, sources).await;
    }
    let mut content = Content::new();
    for item in volume.downward_api.iter().flat_map(|it| it.items.iter().flatten()) {
        let field = item.field_ref.as_ref().map(|it| it.field_path.as_str()).unwrap_or_default();
        let name =
            field.strip_prefix("metadata.annotations['").and_then(|it| it.strip_suffix("']"));
        let text = name.and_then(|it| pod.annotations().get(it)).cloned().unwrap_or_default();
        content.insert(item.path.clone(), text);
    }
    Ok(Ok(content))
}

/// Returns the files of several objects projected into one volume.
async fn projected(
    client: &Client,
    namespace: &str,
    sources: &[VolumeProjection],
) -> Result<Result<Content, String>> {
    let mut content = Content::new();
    for source in sources {
        let part = if let Some(it) = &source.config_map {
            let found = config_map(client, namespace, &it.name).await?;
            chosen(found, it.items.as_deref(), it.optional == Some(true), || {
                format!("configmap \"{}\" not found", it.name)
            })
        } else if let Some(it) = &source.secret {
            let found = secret(client, namespace, &it.name).await?;
            chosen(found, it.items.as_deref(), it.optional == Some(true), || {
                format!("secret \"{}\" not found", it.name)
            })
        } else {
            Ok(Content::new())
        };
        match part {
            Ok(part) => content.extend(part),
            Err(missing) => return Ok(Err(missing)),
        }
    }
    Ok(Ok(content))
}

/// Returns the selected keys under their paths; all keys when none is selected.
fn chosen(
    found: Option<Content>,
    items: Option<&[KeyToPath]>,
    is_optional: bool,
    missing: impl FnOnce() -> String,
) -> Result<Content, String> {
    let Some(mut found) = found else {
        return if is_optional { Ok(Content::new()) } else { Err(missing()) };
    };
    let Some(items) = items.filter(|it| !it.is_empty()) else { return Ok(found) };
    let mut content = Content::new();
    for item in items {
        match found.remove(&item.key) {
            Some(text) => content.insert(item.path.clone(), text),
            None if is_optional => None,
            None => return Err(format!("references non-existent config key: {}", item.key)),
        };
    }
    Ok(content)
}

async fn config_map(client: &Client, namespace: &str, name: &str) -> Result<Option<Content>> {
    let api: Api<ConfigMap> = Api::namespaced(client.clone(), namespace);
    Ok(api.get_opt(name).await?.map(|it| it.data.unwrap_or_default()))
}

async fn secret(client: &Client, namespace: &str, name: &str) -> Result<Option<Content>> {
    let api: Api<Secret> = Api::namespaced(client.clone(), namespace);
    let text = |(key, it): (String, k8s_openapi::ByteString)| {
        (key, String::from_utf8_lossy(&it.0).into_owned())
    };
    let data = api.get_opt(name).await?.map(|it| it.data.unwrap_or_default());
    Ok(data.map(|it| it.into_iter().map(text).collect()))
}

/// Returns the kubelet's message about a variable whose source is missing, or `None` when all
/// exist.
pub(super) async fn missing_variable(
    client: &Client,
    namespace: &str,
    env: &[EnvVar],
) -> Result<Option<String>> {
    for source in env.iter().filter_map(|it| it.value_from.as_ref()) {
        let (kind, name, key, is_optional, found) =
            match (&source.config_map_key_ref, &source.secret_key_ref) {
                (Some(it), _) => {
                    let found = config_map(client, namespace, &it.name).await?;
                    ("configmap", &it.name, &it.key, it.optional == Some(true), found)
                }
                (None, Some(it)) => {
                    let found = secret(client, namespace, &it.name).await?;
                    ("secret", &it.name, &it.key, it.optional == Some(true), found)
                }
                (None, None) => continue,
            };
        match found {
            _ if is_optional => {}
            None => return Ok(Some(format!("{kind} \"{name}\" not found"))),
            Some(found) if !found.contains_key(key) => {
                return Ok(Some(format!("couldn't find key {key} in {kind} {namespace}/{name}")));
            }
            Some(_) => {}
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn content(pairs: &[(&str, &str)]) -> Content {
        pairs.iter().map(|(key, text)| ((*key).into(), (*text).into())).collect()
    }

    #[test]
    fn a_mount_shows_one_key_or_all_of_them() {
        let all = content(&[("a", "1"), ("b", "2")]);
        let mount = |sub_path: Option<&str>| VolumeMount {
            mount_path: "/x".into(),
            sub_path: sub_path.map(Into::into),
            ..VolumeMount::default()
        };
        let paths =
            |it: &VolumeMount| placed(it, &all).into_iter().map(|it| it.0).collect::<Vec<_>>();
        assert_eq!(paths(&mount(None)), ["/x/a", "/x/b"]);
        assert_eq!(paths(&mount(Some("b"))), ["/x"]);
        assert_eq!(paths(&mount(Some("c"))), [""; 0]);
    }

    #[test]
    fn what_is_missing_is_an_error_unless_it_is_optional() {
        let item = KeyToPath { key: "a".into(), path: "p".into(), mode: None };
        let of = |found: Option<Content>, is_optional: bool| {
            chosen(found, Some(std::slice::from_ref(&item)), is_optional, || "none".into())
        };
        assert_eq!(of(Some(content(&[("a", "1")])), false), Ok(content(&[("p", "1")])));
        assert_eq!(of(None, false), Err("none".into()));
        assert_eq!(of(None, true), Ok(Content::new()));
        assert_eq!(of(Some(Content::new()), true), Ok(Content::new()));
        let error = of(Some(Content::new()), false).unwrap_err();
        assert_eq!(error, "references non-existent config key: a");
    }
}

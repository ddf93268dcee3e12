//! Which fields the kinds have, and which fields of other designs they do not have.

use super::*;

/// The paths of all fields of a kind.
fn fields(kind: &str) -> Vec<String> {
    let mut fields = Vec::new();
    each_schema(|path, _| {
        if path.split('.').next() == Some(kind) {
            fields.push(path.to_owned());
        }
    });
    assert!(!fields.is_empty(), "no kind {kind}");
    fields
}

#[test]
fn a_compute_outside_of_pods_has_the_humans_text_and_no_field_of_pods() {
    let fields = fields("NovaExternalCompute");
    assert!(fields.contains(&"NovaExternalCompute.spec.customServiceConfig".to_owned()));
    for field in ["nodeSelector", "replicas", "resources", "tolerations"] {
        let path = format!("NovaExternalCompute.spec.{field}");
        assert!(!fields.contains(&path), "{path}");
    }
}

#[test]
fn a_compute_names_its_cell_and_no_nova() {
    let fields = fields("NovaExternalCompute");
    assert!(fields.contains(&"NovaExternalCompute.spec.cellName".to_owned()));
    assert!(!fields.iter().any(|it| it.ends_with(".novaInstance")));
}

#[test]
fn no_kind_of_the_data_plane_has_a_field_of_nova() {
    for kind in ["", "Role", "Node", "Service", "NodeSet", "Deployment"]
        .map(|it| format!("OpenStackDataPlane{it}"))
    {
        let named = fields(&kind).into_iter().find(|it| it.to_lowercase().contains("nova"));
        assert_eq!(named, None);
    }
}

#[test]
fn a_cell_as_the_control_plane_writes_it_keeps_every_field() {
    let cell: Cell = round_trip(
        r#"
apiVersion: nova.openstack.org/v1beta1
kind: NovaCell
metadata: {name: nova-cell1, namespace: openstack}
spec:
  cellName: cell1
  secret: nova-cell1
  cellMessageBusSecretName: rabbitmq-transport-url-nova-cell1-transport
  keystoneAuthURL: https://keystone-internal.openstack.svc:5000
  serviceUser: nova
  cellDatabaseHostname: openstack-cell1
  cellDatabaseUser: nova_cell1
  apiDatabaseHostname: openstack
  apiDatabaseUser: nova_api
  conductorServiceTemplate: {replicas: 1, customServiceConfig: "[DEFAULT]\ndebug=true"}
  metadataServiceTemplate: {replicas: 0}
  noVNCProxyServiceTemplate: {replicas: 1, networkAttachments: [internalapi]}
  nodeSelector: {disk: ssd}
  debug: {stopJob: false}
  serviceAccount: nova-nova
"#,
    );
    assert_eq!(cell.spec.conductor_service_template["replicas"], 1);
}

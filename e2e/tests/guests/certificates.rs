//! A renewed certificate of libvirt reaches its host by itself, and guests go on and move over it.

use anyhow::{Result, ensure};
use e2e::demo::{DEPLOYMENT, Demo};
use e2e::guests::{Guest, HOSTS, until};
use k8s_openapi::api::core::v1::Secret;

use crate::{Stage, stage};

/// Returns the serial number of the certificate with which libvirt of a host serves.
async fn serial(demo: &Demo, host: &str) -> Result<String> {
    let file = "/var/lib/edpm-config/libvirt/pki/libvirt/servercert.pem";
    demo.on(host, &format!("openssl x509 -noout -serial -in {file}")).await
}

#[tokio::test]
async fn a_guest_outlives_a_renewed_certificate_and_moves_over_it() -> Result<()> {
    let Stage { demo, _lock } = stage().await?;
    let [host, other] = HOSTS;
    let mut guest = Guest::on(&demo, "t-a", host).await?;
    // A live migration would empty one, so a guest of a host with the metadata agent gets none.
    let drive = format!("/var/lib/nova/instances/{}/disk.config", guest.id);
    demo.on(host, &format!("test ! -e {drive}")).await?;
    let before = serial(&demo, host).await?;
    ensure!(before.starts_with("serial="), "{before}");
    // cert-manager issues another one in the place of a Secret that is gone.
    let secret = format!("cert-compute-libvirt-default-{host}");
    demo.ns.remove::<Secret>(&secret).await?;
    until("the renewed certificate is on its host", DEPLOYMENT, async || {
        let after = serial(&demo, host).await?;
        ensure!(after != before, "it still has {after}");
        Ok(())
    })
    .await?;
    demo.settled_on(host).await?;
    guest.lives(&demo).await?;
    for to in [other, host] {
        assert_eq!(guest.migrate(&demo, to).await?["dest"], to);
        guest.lives(&demo).await?;
    }
    Ok(())
}

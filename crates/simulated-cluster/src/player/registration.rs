//! What plays of nova's services leave in the fake nova: a compute that registers, or that stops.

use std::collections::BTreeMap;

use crate::nova::Nova;

/// The service that starts nova-compute.
const STARTS: &str = "nova";
/// The service that stops it.
const STOPS: &str = "nova-cleanup";
/// The end of the path of the generated configuration.
const CONFIGURATION: &str = "01-nova.conf";

/// Whether plays of a service start nova-compute or stop it.
pub(super) fn is_of(service: &str) -> bool {
    [STARTS, STOPS].contains(&service)
}

/// The novas by region, and the computes that have registered there.
#[derive(Default)]
pub(crate) struct Registrations {
    novas: BTreeMap<String, Nova>,
    /// Address of the host → its nova, and the name under which it is registered.
    registered: BTreeMap<String, (Nova, String)>,
}

impl Registrations {
    /// Adds the nova of a region.
    pub(crate) fn add(&mut self, region: &str, nova: &Nova) {
        self.novas.insert(region.to_owned(), nova.clone());
    }

    /// Takes in that a play of a service has succeeded at an address with these files.
    pub(crate) fn deployed(
        &mut self,
        service: &str,
        address: &str,
        files: &BTreeMap<String, String>,
    ) {
        match service {
            STARTS => self.register(address, files),
            STOPS => {
                if let Some((nova, host)) = self.registered.get(address) {
                    nova.report(host, false);
                }
            }
            _ => {}
        }
    }

    /// Registers a compute as its configuration says; without one, the play was not ours.
    fn register(&mut self, address: &str, files: &BTreeMap<String, String>) {
        let configuration = files.iter().find(|(path, _)| path.ends_with(CONFIGURATION));
        let Some((_, configuration)) = configuration else { return };
        let option = |name: &str| option(configuration, name);
        let (Some(host), Some(cell), Some(region)) =
            (option("host"), option("transport_url").and_then(virtual_host), option("region_name"))
        else {
            return;
        };
        if let Some(nova) = self.novas.get(region) {
            nova.register(host, cell);
            self.registered.insert(address.to_owned(), (nova.clone(), host.to_owned()));
        }
    }
}

/// Returns the first value of an option, in whatever section it is.
fn option<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let options = text.lines().filter_map(|it| it.split_once('='));
    options.into_iter().find(|(it, _)| it.trim() == name).map(|(_, value)| value.trim())
}

/// Returns the virtual host of a message bus, which tests name as its cell.
fn virtual_host(transport_url: &str) -> Option<&str> {
    let (_, rest) = transport_url.split_once("://")?;
    let (_, rest) = rest.split_once('/')?;
    rest.split('?').next()
}

#[cfg(test)]
mod tests {
    use anyhow::Result;

    use super::*;
    use crate::Keystone;

    #[tokio::test]
    async fn a_deployed_compute_registers_in_the_cell_and_the_region_of_its_configuration()
    -> Result<()> {
        let keystone = Keystone::start().await?;
        let (one, two) =
            (Nova::start(&keystone, "one").await?, Nova::start(&keystone, "two").await?);
        let mut registrations = Registrations::default();
        registrations.add("one", &one);
        registrations.add("two", &two);
        let text = "[DEFAULT]\ntransport_url = rabbit://a:b@192.0.2.9:5672/nova-cell3?ssl=0\n\
                    host = n0.example.org\n\n[placement]\nregion_name = two\n";
        let files = BTreeMap::from([("/x/01-nova.conf".to_owned(), text.to_owned())]);
        registrations.deployed("libvirt", "a:22", &files);
        registrations.deployed("nova", "b:22", &BTreeMap::new());
        let services = |nova: &Nova| nova.ask("GET", "/v2.1/os-services", None);
        assert_eq!(services(&two)?["services"][0]["host"], serde_json::Value::Null);
        registrations.deployed("nova", "a:22", &files);
        assert_eq!(services(&two)?["services"][0]["host"], "n0.example.org");
        assert_eq!(services(&two)?["services"][0]["state"], "up");
        assert_eq!(services(&one)?["services"][0]["host"], serde_json::Value::Null);
        two.answer_for_cell("nova-cell3", false);
        assert_eq!(services(&two)?["services"][0]["status"], "UNKNOWN");
        two.answer_for_cell("nova-cell3", true);
        registrations.deployed("nova-cleanup", "a:22", &BTreeMap::new());
        assert_eq!(services(&two)?["services"][0]["state"], "down");
        Ok(())
    }
}

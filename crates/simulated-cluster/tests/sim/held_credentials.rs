//! What computes log in with is held until each was deployed with something newer; the test plays the
//! operators that make logins and revoke them.

use anyhow::Result;
use api::dataplane::Node;
use api::nova::{Cell, ExternalCompute};
use api::rabbitmq::RabbitMqUser;
use e2e::{Namespace, SOON, logins};
use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt;
use serde_json::json;
use simulated_cluster::{Broker, Host};

use crate::computes::{self, BUS, CELL, DEPLOYED, settled};
use crate::world::World;

/// Everything that a rotation changes, under one name.
struct Login {
    username: String,
    user: String,
    id: String,
    secret: String,
}

impl Login {
    /// Makes a user and an application credential.
    async fn new(ns: &Namespace, name: &str) -> Result<Self> {
        let user = format!("{name}-1a2b3c4d");
        let id = format!("{name}-0123456789abcdef");
        logins::user(ns, &user, name).await?;
        let secret = logins::credential(ns, &id).await?;
        Ok(Self { username: name.to_owned(), user, id, secret })
    }

    /// The keys of the cell's Secret.
    fn keys(&self) -> [(&str, &str); 3] {
        [("rabbitmq_user_name", &self.user), ("ACID", &self.id), ("ACSecret", "s3cret")]
    }

    /// Rotates to this login: the operators of others write it, and delete the former user at once.
    async fn replaces(&self, ns: &Namespace, broker: &Broker, former: &Self) -> Result<()> {
        broker.set_user(&self.username);
        let keys: serde_json::Map<_, _> =
            self.keys().iter().map(|(key, it)| ((*key).to_owned(), json!(it))).collect();
        ns.merge::<Secret>(CELL, json!({ "stringData": keys })).await?;
        let url = json!({ "stringData": { "transport_url": broker.transport_url() } });
        ns.merge::<Secret>(BUS, url).await?;
        logins::revoke_user(ns, &former.user).await
    }

    /// Whether user and application credential still work.
    async fn works(&self, ns: &Namespace) -> Result<(bool, bool)> {
        let secret = ns.api::<Secret>().get(&self.secret).await?;
        Ok((logins::has_user(ns, &self.user).await?, logins::is_consumed(&secret)))
    }

    /// Waits until nobody holds the user or the credential any more.
    async fn ended(&self, ns: &Namespace) -> Result<()> {
        ns.gone::<RabbitMqUser>(&self.user, SOON).await?;
        let is_free = |it: &Secret| !logins::is_consumed(it);
        ns.wait::<Secret>(&self.secret, "released", SOON, is_free).await.map(drop)
    }
}

/// Waits until a compute uses these logins and no other.
async fn uses(ns: &Namespace, compute: &str, logins: &[&Login]) -> Result<()> {
    let mut expected: Vec<&str> =
        logins.iter().flat_map(|it| [it.user.as_str(), it.secret.as_str()]).collect();
    expected.sort_unstable();
    let is_so = |it: &ExternalCompute| {
        let used = it.status.iter().flat_map(|it| &it.credentials);
        let mut names: Vec<&str> = used.map(|it| it.name.as_str()).collect();
        names.sort_unstable();
        names == expected
    };
    let what = format!("deployed with {expected:?}");
    ns.wait::<ExternalCompute>(compute, &what, DEPLOYED, is_so).await.map(drop)
}

/// Sets whether changes reach a host.
async fn deploys(ns: &Namespace, host: &Host, deploy: bool) -> Result<()> {
    let strategy = json!({ "spec": { "deployStrategy": { "deploy": deploy } } });
    ns.merge::<Node>(&host.name, strategy).await?;
    let is_so = |it: &ExternalCompute| it.spec.deploy == Some(deploy);
    let what = format!("deploy is {deploy}");
    ns.wait::<ExternalCompute>(&host.name, &what, SOON, is_so).await.map(drop)
}

#[tokio::test]
async fn a_login_ends_exactly_when_the_last_compute_has_a_newer_one_also_after_two_rotations()
-> Result<()> {
    let ns = World::new("held-logins").await?;
    logins::serve(&ns.client).await?;
    let broker = Broker::start("one", "first", "v").await?;
    let first = Login::new(&ns, "one").await?;
    computes::cell_at(&ns, ns.sim, (CELL, BUS), &broker, &first.keys()).await?;
    let quick = ns.host("held-quick", "192.0.2.145");
    let slow = ns.host_like(&quick, "held-slow", "192.0.2.146");
    computes::deploy(&ns, &[&quick, &slow]).await?;
    for host in [&quick, &slow] {
        uses(&ns, &host.name, &[&first]).await?;
    }
    assert_eq!(first.works(&ns).await?, (true, true));

    // A rotation that reaches one host, while the other one is not deployed.
    deploys(&ns, &slow, false).await?;
    let second = Login::new(&ns, "two").await?;
    second.replaces(&ns, &broker, &first).await?;
    uses(&ns, &quick.name, &[&second]).await?;
    assert_eq!(first.works(&ns).await?, (true, true), "{} has it", slow.name);

    // Another one before the first is rolled out, which hangs on the other host.
    quick.hold("nova");
    let third = Login::new(&ns, "three").await?;
    third.replaces(&ns, &broker, &second).await?;
    uses(&ns, &quick.name, &[&second, &third]).await?;
    for login in [&first, &second, &third] {
        assert_eq!(login.works(&ns).await?, (true, true), "{}", login.user);
    }
    let held = format!("RabbitMQUser {} ({})", first.user, slow.name);
    let words = [held.as_str(), second.user.as_str(), second.secret.as_str()];
    ns.reports::<Cell>(CELL, "ComputesUpToDate", "ComputesBehind", &words, SOON).await?;
    quick.release();
    uses(&ns, &quick.name, &[&third]).await?;
    second.ended(&ns).await?;
    assert_eq!(first.works(&ns).await?, (true, true), "{} has it", slow.name);

    // The last host gets the newest one.
    deploys(&ns, &slow, true).await?;
    uses(&ns, &slow.name, &[&third]).await?;
    settled(&ns, &slow).await?;
    first.ended(&ns).await?;
    let user = ns.api::<RabbitMqUser>().get(&third.user).await?;
    assert_eq!(user.finalizers(), ["nova.openstack.org/computes"]);
    assert_eq!(third.works(&ns).await?, (true, true));
    ns.done().await
}

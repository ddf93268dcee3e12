//! A change that has to be deployed but cannot be: the compute is not Ready, whatever it was
//! before.

use super::*;

type Change = fn(&mut World);

/// What goes missing, and the reason of `Ready` once there is a change.
const LOSSES: [(Change, &str); 5] = [
    (|it| it.seen.ssh = None, "SshSecretNotFound"),
    (|it| it.seen.cell_secret = None, "SecretNotFound"),
    (|it| it.seen.cell = None, "NovaCellNotFound"),
    (|it| it.seen.node = None, "NodeNotFound"),
    (|it| it.seen.group = None, "RoleNotFound"),
];

const EDIT: Option<&str> = Some("[libvirt]\ncpu_mode = none\n");

#[test]
fn an_edit_that_cannot_be_deployed_is_never_ready_and_what_went_missing_before_it_was() {
    for (lose, reason) in LOSSES {
        let mut world = World::deployed();
        let whole = world.seen.clone();
        lose(&mut world);
        world.settle();
        assert_eq!(world.reason("Ready"), "Ready", "nothing is to be deployed: {reason}");
        world.configure(EDIT).settle();
        let ready = world.condition("Ready");
        assert_eq!((ready.status, ready.reason.as_str()), (ConditionStatus::False, reason));
        assert_eq!(ready.observed_generation, world.seen.compute.metadata.generation);
        // It stays so, and one deployment of the change corrects it.
        assert_eq!(world.settle(), Vec::<String>::new());
        let compute = Arc::clone(&world.seen.compute);
        let (rendered, runs) = (world.seen.rendered.clone(), world.seen.runs.clone());
        world.seen = Observed { compute, rendered, runs, ..whole };
        assert_eq!(world.n_runs(), 0, "{reason}");
        world.settle();
        world.end_well(2);
        assert_eq!((world.reason("Ready").as_str(), world.n_runs()), ("Ready", 2), "{reason}");
    }
}

#[test]
fn an_edit_that_nobody_wants_deployed_leaves_the_compute_ready() {
    for (lose, reason) in LOSSES {
        let mut world = World::deployed();
        world.compute().spec.deploy = Some(false);
        lose(&mut world);
        world.configure(EDIT).settle();
        assert_eq!(world.reason("Ready"), "Ready", "{reason}");
    }
}

#[test]
fn an_edit_that_waits_for_the_ssh_key_is_named_and_deploys_nothing_that_it_does_not_change() {
    let mut world = World::deployed();
    world.seen.ssh = None;
    world.configure(EDIT).settle();
    let told = world.condition("UpToDate");
    let text = "Changed since the last deployment: customServiceConfig.";
    assert_eq!((told.reason.as_str(), told.message.as_str()), ("InputsChanged", text));

    let mut world = World::deployed();
    let ssh = world.seen.ssh.take();
    world.compute().spec.ssh_key_secret_name = Some("another".into());
    world.compute().metadata.generation = Some(2);
    world.settle();
    assert_eq!(world.reason("Ready"), "SshSecretNotFound");
    world.seen.ssh = ssh;
    world.settle();
    assert_eq!((world.reason("Ready").as_str(), world.n_runs()), ("Ready", 0));
}

#[test]
fn an_edit_is_not_ready_while_the_cells_new_credentials_are_tried() {
    let mut world = World::deployed();
    let tried = BTreeMap::from([(CREDENTIALS.to_owned(), "another".to_owned())]);
    world.cell().status.as_mut().unwrap().hash = tried;
    assert_eq!(world.settle(), Vec::<String>::new(), "until then all stays as it was");
    world.configure(EDIT).settle();
    assert_eq!(world.reason("Ready"), "Waiting");
    assert_eq!(world.condition("UpToDate").status, ConditionStatus::Unknown);
}

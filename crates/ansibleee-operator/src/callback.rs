//! Ansible's plugins that every runner pod gets: what a run did to each host, and what a host may cost.

/// A plugin's file. It travels with the Job as the run's own texts do: were it an object of the
/// namespace, whoever may write such objects would have their own code in every runner pod.
#[derive(Clone, Copy, Debug)]
pub struct Plugin {
    /// Its name among the Job's files.
    pub name: &'static str,
    /// Where Ansible looks for it in the pod.
    pub folder: &'static str,
    /// Its file's name, which is the plugin's.
    pub file: &'static str,
    /// Its text.
    pub text: &'static str,
}

/// Tells each host's result.
pub const RESULT: Plugin = Plugin {
    name: "callback",
    folder: "/opt/edpm/callback",
    file: "edpm_result.py",
    text: include_str!("../../../ansible/callback/edpm_result.py"),
};
/// Bounds what one host costs the others; in a folder of its own, for only the first one is a plugin
/// for variables too.
pub const BOUNDS: Plugin = Plugin {
    name: "bounds",
    folder: "/opt/edpm/bounds",
    file: "edpm_bounds.py",
    text: include_str!("../../../ansible/bounds/edpm_bounds.py"),
};
/// Sees whether hosts' own ssh keys are checked, for the first one to tell.
pub const KEY_CHECKS: Plugin = Plugin {
    name: "key-checks",
    folder: "/opt/edpm/key_checks",
    file: "edpm_key_checks.py",
    text: include_str!("../../../ansible/key_checks/edpm_key_checks.py"),
};
/// All of them.
pub const PLUGINS: [Plugin; 3] = [RESULT, BOUNDS, KEY_CHECKS];
/// The folder that holds theirs.
pub const DIR: &str = "/opt/edpm";

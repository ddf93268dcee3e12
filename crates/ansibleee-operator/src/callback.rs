//! Ansible plugins in every runner pod: results per host, bounds per host, and host key checks.

/// A plugin's file.
///
/// It is part of the Job, as the run's own texts are. If it were an object in the namespace, anyone
/// who may write such objects could run code in every runner pod.
#[derive(Clone, Copy, Debug)]
pub struct Plugin {
    /// Its name among the Job's files.
    pub name: &'static str,
    /// The directory in the pod where Ansible looks for it.
    pub folder: &'static str,
    /// Its file name, which is the plugin's name.
    pub file: &'static str,
    /// Its source code.
    pub text: &'static str,
}

/// Reports the result of each host.
pub const RESULT: Plugin = Plugin {
    name: "callback",
    folder: "/opt/edpm/callback",
    file: "edpm_result.py",
    text: include_str!("../../../ansible/callback/edpm_result.py"),
};
/// Limits the time and the memory that one host may cost the others.
///
/// It has its own directory, because only [`RESULT`] is also a vars plugin.
pub const BOUNDS: Plugin = Plugin {
    name: "bounds",
    folder: "/opt/edpm/bounds",
    file: "edpm_bounds.py",
    text: include_str!("../../../ansible/bounds/edpm_bounds.py"),
};
/// Finds out whether hosts' own ssh keys are checked; [`RESULT`] reports it.
pub const KEY_CHECKS: Plugin = Plugin {
    name: "key-checks",
    folder: "/opt/edpm/key_checks",
    file: "edpm_key_checks.py",
    text: include_str!("../../../ansible/key_checks/edpm_key_checks.py"),
};
/// All plugins.
pub const PLUGINS: [Plugin; 3] = [RESULT, BOUNDS, KEY_CHECKS];
/// The directory that contains the plugins' directories.
pub const DIR: &str = "/opt/edpm";

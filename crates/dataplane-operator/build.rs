//! Lists the files of the default services, so that a new file is a new default service.

use std::error::Error;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::Path;
use std::{env, fs, io};

#[expect(clippy::disallowed_methods, reason = "build scripts get their input in variables")]
fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=services");
    let folder = Path::new(&env::var("CARGO_MANIFEST_DIR")?).join("services");
    let names = fs::read_dir(folder)?.map(|it| Ok(it?.file_name()));
    let mut names = names.collect::<io::Result<Vec<OsString>>>()?;
    names.sort();
    let mut texts = String::new();
    for name in names {
        let file = format!("/services/{}", name.display());
        // Not the folder's path itself: another checkout may build with the same target folder.
        write!(texts, "include_str!(concat!(env!(\"CARGO_MANIFEST_DIR\"), {file:?})), ")?;
    }
    let list = Path::new(&env::var("OUT_DIR")?).join("default_services.rs");
    fs::write(list, format!("[{texts}]"))?;
    Ok(())
}

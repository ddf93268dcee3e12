//! Lists the files of the default services, so that a new file is a new default service.

use std::error::Error;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

#[expect(clippy::disallowed_methods, reason = "Cargo tells build scripts by variables alone")]
fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=services");
    let folder = Path::new(&env::var("CARGO_MANIFEST_DIR")?).join("services");
    let paths = fs::read_dir(folder)?.map(|it| Ok(it?.path()));
    let mut paths = paths.collect::<io::Result<Vec<PathBuf>>>()?;
    paths.sort();
    let mut texts = String::new();
    for path in paths {
        write!(texts, "include_str!({:?}), ", path.display().to_string())?;
    }
    let list = Path::new(&env::var("OUT_DIR")?).join("default_services.rs");
    fs::write(list, format!("[{texts}]"))?;
    Ok(())
}

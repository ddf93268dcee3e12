//! Makes the drives of hosts, a line of JSON for each line of JSON: `tests/cloudinit` compares what
//! other programs read from them with what the hosts say.
#![allow(clippy::print_stdout, reason = "its answers are its output")]

use std::collections::BTreeMap;
use std::io::{BufRead as _, stdin};

use config_drive::{ApiVersion, ConfigDriveFormat, Drive, Fault, Host};
use serde_json::{Value, json};

fn main() -> anyhow::Result<()> {
    for line in stdin().lock().lines() {
        println!("{}", answer(&serde_json::from_str(&line?)?)?);
    }
    Ok(())
}

/// Files and both forms, or the faults.
fn answer(host: &Host) -> anyhow::Result<Value> {
    let told = |it: &Fault| it.to_string();
    let drive = match Drive::of(host) {
        Ok(drive) => drive,
        Err(faults) => return Ok(json!({"faults": faults.iter().map(told).collect::<Vec<_>>()})),
    };
    let version = ApiVersion { major: 1, minor: 59 };
    let form = |format| {
        let form = drive.configdrive(format, version).map_err(|it| anyhow::anyhow!("{it}"))?;
        anyhow::Ok(form.expose().clone())
    };
    let files = drive.files();
    let files: BTreeMap<_, _> = files.iter().map(|(name, text)| (name, text.expose())).collect();
    Ok(json!({
        "files": files,
        "json": form(ConfigDriveFormat::Json)?,
        "iso": form(ConfigDriveFormat::Iso)?,
        "hash": drive.hash(),
    }))
}

//! `kubernetes`: the role that linerate needs in a cluster, whether it is there, and what is left of runs.
//! `image`: the image of its pods.

use std::fs::{self, File};
use std::io::{BufWriter, Write};

use linerate_lab::host::kubernetes::image::{architecture_of, write_image};
use linerate_lab::host::kubernetes::{Client, ClusterError, Trouble, find, roles};
use linerate_lab::plan::KubernetesHost;
use linerate_measure::run::exit;
use serde_json::json;

use super::{Failure, print};
use crate::args::{
    CheckArgs, CleanArgs, ImageArgs, KubernetesArgs, KubernetesCommand, ManifestArgs,
};
use crate::executable::own_path;
use crate::output::{Style, Table, render_json};

/// The namespace of a manifest that names none.
const NAMESPACE: &str = "linerate";

impl From<ClusterError> for Failure {
    fn from(error: ClusterError) -> Self {
        let exit_code = match error.trouble {
            Trouble::Config => exit::FAILED,
            Trouble::Unreachable => exit::UNREACHABLE,
            _ => exit::REFUSED,
        };
        Self { exit_code, text: Some(error.to_string()) }
    }
}

/// Does what the command line says; the exit code.
pub(super) fn attend_cluster(args: &KubernetesArgs) -> Result<u8, Failure> {
    match &args.command {
        KubernetesCommand::Manifest(manifest) => print_manifest(args, manifest),
        KubernetesCommand::Check(check) => check_cluster(args, check),
        KubernetesCommand::Clean(clean) => remove_left(args, clean),
    }
}

fn print_manifest(args: &KubernetesArgs, manifest: &ManifestArgs) -> Result<u8, Failure> {
    let namespace = args.namespace.as_deref().unwrap_or(NAMESPACE);
    for (flag, name) in [("--namespace", namespace), ("--account", &manifest.account)] {
        let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        let has_ends = !name.starts_with('-') && !name.ends_with('-');
        if name.is_empty() || name.len() > 63 || !name.chars().all(is_plain) || !has_ends {
            return Err(Failure::usage(format!(
                "{flag} {name:?}: a name in a cluster has up to 63 lower-case letters, digits and \
                 hyphens between them"
            )));
        }
    }
    print(&roles::manifest(namespace, &manifest.account))?;
    Ok(exit::VALID)
}

/// The cluster and the namespace that are meant.
fn cluster_of(args: &KubernetesArgs) -> Result<(Client, String), Failure> {
    let config = find(args.kubeconfig.as_deref(), args.context.as_deref())
        .map_err(|said| Failure::here(format!("{said}.")))?;
    let namespace = args.namespace.clone().unwrap_or_else(|| config.namespace.clone());
    Ok((Client::new(config), namespace))
}

fn check_cluster(args: &KubernetesArgs, check: &CheckArgs) -> Result<u8, Failure> {
    let (client, namespace) = cluster_of(args)?;
    let version = client.version()?;
    let permissions = roles::permissions(&client, &namespace)?;
    let host = KubernetesHost { image: Some(check.image.clone()), ..KubernetesHost::default() };
    let objection = roles::try_job(&client, &namespace, &host).err();
    let missing: Vec<String> = permissions
        .iter()
        .filter(|one| !one.is_allowed)
        .map(|one| format!("{} {}", one.verb, one.resource))
        .collect();
    let is_ready = missing.is_empty() && objection.is_none();
    if check.json {
        let document = json!({
            "server": client.config().server,
            "version": version,
            "namespace": namespace,
            "ready": is_ready,
            "missing": missing,
            "objection": objection.as_ref().map(ToString::to_string),
        });
        print(&format!("{}\n", render_json(&document)))?;
    } else {
        let mut table = Table::with_head(&["what", "state"]);
        let mut row = |what: &str, state: String| table.push(vec![what.to_owned(), state]);
        row("server", client.config().server.clone());
        row("version", version);
        row("namespace", namespace);
        let all = match missing.as_slice() {
            [] => "complete".to_owned(),
            missing => format!("missing: {}", missing.join(", ")),
        };
        row("role", all);
        row("pod", objection.map_or_else(|| "accepted".to_owned(), |error| error.to_string()));
        print(&table.render(Style::Plain))?;
    }
    Ok(if is_ready { exit::VALID } else { exit::REFUSED })
}

fn remove_left(args: &KubernetesArgs, clean: &CleanArgs) -> Result<u8, Failure> {
    if clean.run.as_deref() == Some("") {
        return Err(Failure::usage("--run is empty: name a run, or give --all"));
    }
    let (client, namespace) = cluster_of(args)?;
    let left = roles::left(&client, &namespace, None)?;
    let wanted = clean.run.as_deref().unwrap_or_default();
    let of_run: Vec<_> = left.into_iter().filter(|left| left.run.starts_with(wanted)).collect();
    let mut table = Table::with_head(&["kind", "name", "run"]);
    for left in &of_run {
        if !clean.dry_run {
            roles::remove(&client, &namespace, left)?;
        }
        table.push(vec![left.kind.to_owned(), left.name.clone(), left.run.clone()]);
    }
    match of_run.as_slice() {
        [] => print(&format!("nothing is left in {namespace}\n"))?,
        _ => print(&table.render(Style::Plain))?,
    }
    Ok(exit::VALID)
}

/// Writes the image; the exit code.
pub(super) fn write_own_image(args: &ImageArgs) -> Result<u8, Failure> {
    let path = args.binary.clone().unwrap_or_else(own_path);
    let binary = fs::read(&path)
        .map_err(|error| Failure::here(format!("can't read {}: {error}", path.display())))?;
    let arch = architecture_of(&binary).map_err(|why| {
        Failure::usage(format!(
            "{} {why}: build linerate with RUSTFLAGS=\"-C target-feature=+crt-static\" and a --target, \
             and give that file to --binary",
            path.display()
        ))
    })?;
    let unwritten = |error: std::io::Error| {
        Failure::here(format!("can't write {}: {error}", args.output.display()))
    };
    let mut out = BufWriter::new(File::create(&args.output).map_err(unwritten)?);
    write_image(&mut out, &binary, arch, &args.name).map_err(unwritten)?;
    out.flush().map_err(unwritten)?;
    print(&format!("{} has {} for {arch}\n", args.output.display(), args.name))?;
    Ok(exit::VALID)
}

//! The flags of `kubernetes` and `image`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use linerate_lab::plan::KubernetesHost;

/// The flags of `kubernetes`.
#[derive(Args, Debug)]
#[command(before_help = "Examples:
  linerate kubernetes manifest | kubectl apply -f -   a namespace with the role that linerate needs
  linerate kubernetes check --namespace perf          what is missing there
  linerate kubernetes clean --run RUN                 removes what is left of a run")]
pub struct KubernetesArgs {
    /// The kubeconfig [default: $KUBECONFIG, else ~/.kube/config, else what a pod has]
    #[arg(long, value_name = "FILE", global = true)]
    pub kubeconfig: Option<PathBuf>,
    /// The context of the kubeconfig [default: the current one]
    #[arg(long, value_name = "NAME", global = true)]
    pub context: Option<String>,
    /// The namespace [default: the context's; of manifest: linerate]
    #[arg(long, value_name = "NAME", global = true)]
    pub namespace: Option<String>,
    /// What to do.
    #[command(subcommand)]
    pub command: KubernetesCommand,
}

/// What to do with a cluster.
#[derive(Debug, Subcommand)]
pub enum KubernetesCommand {
    /// Print a namespace, an account and the role that linerate needs, as YAML
    Manifest(ManifestArgs),
    /// Show whether the cluster can be reached, which verbs are missing, and what it has against a pod
    Check(CheckArgs),
    /// Remove the Jobs and Services that are left of a run
    Clean(CleanArgs),
}

/// The flags of `kubernetes manifest`.
#[derive(Args, Debug)]
#[command(before_help = "Examples:
  linerate kubernetes manifest --namespace perf | kubectl apply -f -")]
pub struct ManifestArgs {
    /// The name of the account, the role and their binding
    #[arg(long, value_name = "NAME", default_value = "linerate")]
    pub account: String,
}

/// The flags of `kubernetes check`.
#[derive(Args, Debug)]
#[command(before_help = "Examples:
  linerate kubernetes check
  linerate kubernetes check --image registry.example/linerate:1")]
pub struct CheckArgs {
    /// The image of the pod that the API server looks at
    #[arg(long, value_name = "IMAGE", default_value = KubernetesHost::IMAGE)]
    pub image: String,
    /// Print a JSON document
    #[arg(long)]
    pub json: bool,
}

/// The flags of `kubernetes clean`.
#[derive(Args, Debug)]
#[command(before_help = "Examples:
  linerate kubernetes clean --run 3f2a        what is left of this run
  linerate kubernetes clean --dry-run         shows what is left of all runs")]
pub struct CleanArgs {
    /// The run: its name, or the beginning of it
    #[arg(long, value_name = "RUN", required_unless_present_any = ["all", "dry_run"])]
    pub run: Option<String>,
    /// Everything that linerate made in the namespace, also of runs that go on now
    #[arg(long, conflicts_with = "run")]
    pub all: bool,
    /// Show what would be removed
    #[arg(long)]
    pub dry_run: bool,
}

/// The flags of `image`.
#[derive(Args, Debug)]
#[command(before_help = "Examples:
  linerate image --output linerate.tar                   for docker load, podman load, ctr import
  linerate image --output l.tar --name reg.example/linerate:1")]
pub struct ImageArgs {
    /// The file: a tar that is an OCI layout and what `docker load` reads
    #[arg(long, short = 'o', value_name = "FILE")]
    pub output: PathBuf,
    /// What the image is called where it is loaded
    #[arg(long, value_name = "NAME", default_value = KubernetesHost::IMAGE)]
    pub name: String,
    /// The static executable of linerate [default: this one]
    #[arg(long, value_name = "FILE")]
    pub binary: Option<PathBuf>,
}

//! Authentication: both ends of the engine, and the program against an installed original.

use std::path::Path;

use linerate::personality::iperf3::plan::test_plan;
use linerate::personality::iperf3::read;
use linerate_engine::event::Cancel;
use linerate_engine::iperf3::{Authority, Credentials, Padding, ServePlan, run};
use linerate_personality::iperf3::release::Release;
use linerate_wire::iperf3::Code;

use super::hostile_peers::short;
use super::load::{Running, plan};
use super::programs::{Process, Program, has_original, serve};

/// A key made for these tests alone, and its public half.
pub(crate) const PRIVATE_KEY: &str = include_str!("keys/private.pem");
pub(crate) const PUBLIC_KEY: &str = include_str!("keys/public.pem");

/// The user `mario` is allowed; his hash is SHA-256 of "{mario}rossi".
pub(crate) const USERS: &str = "# who may\nluigi,00\n\
    mario,bf7a49a846d44b454a5d11e7acfaf13d138bbe0b7483aa3e050879700572709b\n";

#[test]
fn only_users_with_their_password_may_test() {
    let folder = tempfile::tempdir().unwrap();
    let users_file = folder.path().join("users");
    // A name that isn't UTF-8 shuts nobody else out.
    std::fs::write(&users_file, [b"jos\xe9,00\n", USERS.as_bytes()].concat()).unwrap();
    for padding in [Padding::Oaep, Padding::Pkcs1] {
        let private_key_pem = PRIVATE_KEY.to_owned();
        let users_file = users_file.clone();
        let authority = Authority { private_key_pem, users_file, time_skew_s: 10, padding };
        let server =
            Running::start(ServePlan { authority: Some(authority), ..ServePlan::default() });
        let comes = |user: &str, password: &str, padding: Padding| {
            let credentials = Credentials {
                username: user.to_owned(),
                password: password.to_owned(),
                public_key_pem: PUBLIC_KEY.to_owned(),
                padding,
            };
            let mut plan = plan("127.0.0.1", server.port, short());
            plan.credentials = Some(credentials);
            run(&plan, &mut (), &Cancel::default()).map_err(|failure| failure.code)
        };
        assert!(comes("mario", "rossi", padding).is_ok(), "{padding:?}");
        let other = if padding == Padding::Oaep { Padding::Pkcs1 } else { Padding::Oaep };
        for (user, password, padding) in [
            ("mario", "verdi", padding),
            ("luigi", "", padding),
            ("", "", padding),
            ("mario", "rossi", other),
        ] {
            let refused = comes(user, password, padding).unwrap_err();
            assert_eq!(refused, Code::AUTHORIZATION, "{user} {password} {padding:?}");
        }
        let without = run(&plan("127.0.0.1", server.port, short()), &mut (), &Cancel::default());
        assert_eq!(without.unwrap_err().code, Code::AUTHORIZATION);
    }
}

#[test]
fn a_client_pads_as_the_release_that_it_claims_or_as_it_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let key = folder.path().join("public.pem");
    std::fs::write(&key, PUBLIC_KEY).unwrap();
    for (flag, release, padding) in [
        ("", Release::V3_21, Padding::Oaep),
        ("--use-pkcs1-padding", Release::V3_21, Padding::Pkcs1),
        ("", Release::V3_12, Padding::Pkcs1),
    ] {
        let words = format!("-c h --username me --rsa-public-key-path {} {flag}", key.display());
        let words: Vec<String> = words.split_whitespace().map(str::to_owned).collect();
        let options = read(&words).unwrap();
        let plan = test_plan(&options, release, || Some("secret".to_owned())).unwrap();
        assert_eq!(plan.credentials.unwrap().padding, padding, "{flag} {release:?}");
    }
}

/// Whether the original pads as releases up to 3.16; `None` where it knows no credentials.
fn pads_as_of_old() -> Option<bool> {
    let output = Program::Original.command("--version").output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let minor = text.split("iperf 3.").nth(1).unwrap();
    let minor: u32 =
        minor.split(|letter: char| !letter.is_ascii_digit()).next().unwrap().parse().unwrap();
    text.contains("authentication").then_some(minor < 17)
}

fn client_words(folder: &Path, port: u16) -> String {
    let key = folder.join("public.pem");
    format!("-c 127.0.0.1 -p {port} -n 1M --username mario --rsa-public-key-path {}", key.display())
}

#[test]
fn an_installed_original_takes_our_credentials_and_gives_us_its() {
    if !has_original() {
        return;
    }
    let Some(old) = pads_as_of_old() else { return };
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    for (name, text) in [("public.pem", PUBLIC_KEY), ("private.pem", PRIVATE_KEY), ("users", USERS)]
    {
        std::fs::write(folder.join(name), text).unwrap();
    }
    let flag = if old { "--use-pkcs1-padding" } else { "" };
    let claim = if old { "3.12" } else { "3.21" };
    let authority = format!(
        "--rsa-private-key-path {} --authorized-users-path {}",
        folder.join("private.pem").display(),
        folder.join("users").display()
    );
    for (server, client, server_flag, client_flag, claim, password, code) in [
        (Program::Original, Program::Ours, "", flag, "", "rossi", 0),
        (Program::Original, Program::Ours, "", "", claim, "rossi", 0),
        (Program::Original, Program::Ours, "", "", claim, "verdi", 1),
        (Program::Ours, Program::Original, flag, "", "", "rossi", 0),
    ] {
        let (_server, port) = serve(server, &format!("{authority} {server_flag}"));
        let words = format!("{} {client_flag}", client_words(folder, port));
        let mut command = client.command(&words);
        command.env("IPERF3_PASSWORD", password).env("LINERATE_IPERF3_VERSION", claim);
        let mut client = Process::start(&mut command);
        assert_eq!(client.wait(), code, "{words}: {}", client.complaint());
    }
}

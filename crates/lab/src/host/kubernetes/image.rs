//! The image of the agent: one tar that is an OCI layout and what `docker load` reads.

use std::io::{self, Write};

use aws_lc_rs::digest;
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::json;

/// The user and group that the program runs as.
const USER: &str = "65532:65532";

/// The block of a tar, bytes.
const BLOCK: usize = 512;

/// Where the program is in the image.
pub const PROGRAM: &str = "linerate";

/// The architecture that an executable was built for, as Rust names it, if it runs in an image that has nothing else.
///
/// # Errors
/// A sentence: no executable of Linux, or one that needs libraries.
pub fn architecture_of(binary: &[u8]) -> Result<&'static str, String> {
    // ELF64, least significant byte first (elf(5)): the only kind that linerate is built as.
    if binary.get(..6) != Some(b"\x7fELF\x02\x01") {
        return Err("is no executable of 64-bit Linux".to_owned());
    }
    let number = |at: usize, size: usize| {
        let bytes = binary.get(at..at.checked_add(size)?)?;
        Some(bytes.iter().rev().fold(0_usize, |number, byte| number << 8 | usize::from(*byte)))
    };
    let arch = match number(18, 2) {
        Some(62) => "x86_64",
        Some(183) => "aarch64",
        Some(243) => "riscv64",
        _ => return Err("was built for an architecture that images don't name here".to_owned()),
    };
    let headers = number(32, 8).zip(number(54, 2)).zip(number(56, 2));
    let Some(((begin, size), count)) = headers else { return Err("is cut off".to_owned()) };
    // PT_INTERP names the program that loads the libraries.
    let is_loader = |place: usize| {
        let at = place.checked_mul(size).and_then(|offset| offset.checked_add(begin));
        at.and_then(|at| number(at, 4)) == Some(3)
    };
    if (0..count).any(is_loader) {
        return Err("needs the libraries of this system, and an image has none".to_owned());
    }
    Ok(arch)
}

/// Writes an image of a static binary, the same bytes for the same binary. `arch` is Rust's name for it, `name` what
/// the image is called where it is loaded.
///
/// # Errors
/// Those of writing.
pub fn write_image(out: &mut dyn Write, binary: &[u8], arch: &str, name: &str) -> io::Result<()> {
    let mut layer = Vec::new();
    // What runs as another user than root needs a directory for its files where none is mounted.
    append(&mut layer, "tmp/", 0o1777, b'5', &[])?;
    append(&mut layer, PROGRAM, 0o755, b'0', binary)?;
    layer.resize(layer.len() + 2 * BLOCK, 0);
    let unpacked = sha256(&layer);
    // The header of gzip has no time and no name.
    let mut gzip = GzEncoder::new(Vec::new(), Compression::best());
    gzip.write_all(&layer)?;
    let packed = gzip.finish()?;
    let config = serde_json::to_vec(&json!({
        "architecture": architecture(arch),
        "os": "linux",
        "created": "1970-01-01T00:00:00Z",
        "config": {
            "User": USER,
            "Entrypoint": [format!("/{PROGRAM}")],
            "Cmd": ["serve"],
            "Env": ["HOME=/tmp"],
            "WorkingDir": "/",
        },
        "rootfs": { "type": "layers", "diff_ids": [format!("sha256:{unpacked}")] },
        "history": [{ "created": "1970-01-01T00:00:00Z", "created_by": "linerate image" }],
    }))?;
    let layer_path = format!("blobs/sha256/{}", sha256(&packed));
    let config_path = format!("blobs/sha256/{}", sha256(&config));
    let manifest = serde_json::to_vec(&json!({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": descriptor("application/vnd.oci.image.config.v1+json", &config),
        "layers": [descriptor("application/vnd.oci.image.layer.v1.tar+gzip", &packed)],
    }))?;
    let manifest_path = format!("blobs/sha256/{}", sha256(&manifest));
    let mut of_manifest = descriptor("application/vnd.oci.image.manifest.v1+json", &manifest);
    let tag = name.rsplit('/').next().and_then(|last| last.rsplit_once(':')).map(|(_, tag)| tag);
    of_manifest["annotations"] = json!({
        "io.containerd.image.name": name,
        "org.opencontainers.image.ref.name": tag.unwrap_or("latest"),
    });
    let index = serde_json::to_vec(&json!({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.index.v1+json",
        "manifests": [of_manifest],
    }))?;
    let for_docker = serde_json::to_vec(&json!([{
        "Config": config_path,
        "RepoTags": [name],
        "Layers": [layer_path],
    }]))?;
    append(out, "oci-layout", 0o644, b'0', br#"{"imageLayoutVersion":"1.0.0"}"#)?;
    append(out, "index.json", 0o644, b'0', &index)?;
    append(out, "manifest.json", 0o644, b'0', &for_docker)?;
    append(out, "blobs/", 0o755, b'5', &[])?;
    append(out, "blobs/sha256/", 0o755, b'5', &[])?;
    append(out, &config_path, 0o644, b'0', &config)?;
    append(out, &layer_path, 0o644, b'0', &packed)?;
    append(out, &manifest_path, 0o644, b'0', &manifest)?;
    out.write_all(&[0; 2 * BLOCK])
}

fn descriptor(media_type: &str, content: &[u8]) -> serde_json::Value {
    json!({
        "mediaType": media_type,
        "digest": format!("sha256:{}", sha256(content)),
        "size": content.len(),
    })
}

fn sha256(bytes: &[u8]) -> String {
    let digest = digest::digest(&digest::SHA256, bytes);
    digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Go's names, which images use.
fn architecture(arch: &str) -> &str {
    match arch {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        "powerpc64" => "ppc64le",
        other => other,
    }
}

/// Appends a file of root's with the time 0 (POSIX.1-1988 ustar).
fn append(
    out: &mut (impl Write + ?Sized),
    name: &str,
    mode: u32,
    kind: u8,
    content: &[u8],
) -> io::Result<()> {
    let mut header = [0_u8; BLOCK];
    let mut put = |at: usize, text: &str| {
        for (place, byte) in header.iter_mut().skip(at).zip(text.bytes()) {
            *place = byte;
        }
    };
    put(0, name);
    put(100, &format!("{mode:07o}"));
    put(108, "0000000");
    put(116, "0000000");
    put(124, &format!("{:011o}", content.len()));
    put(136, "00000000000");
    put(148, "        ");
    put(257, "ustar");
    put(263, "00");
    header[156] = kind;
    let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
    for (place, byte) in header.iter_mut().skip(148).zip(format!("{sum:06o}\0 ").bytes()) {
        *place = byte;
    }
    out.write_all(&header)?;
    out.write_all(content)?;
    let rest = content.len().next_multiple_of(BLOCK) - content.len();
    out.write_all(&[0; BLOCK][..rest])
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::io::Read as _;

    use serde_json::Value;

    use super::*;

    /// The files of a tar, with their sums checked.
    fn files(tar: &[u8]) -> BTreeMap<String, Vec<u8>> {
        let mut all = BTreeMap::new();
        let mut rest = tar;
        while rest[0] != 0 {
            let text = |range: std::ops::Range<usize>| {
                let bytes = rest[range].split(|b| *b == 0).next().unwrap();
                String::from_utf8(bytes.to_vec()).unwrap()
            };
            let number = |range| u32::from_str_radix(text(range).trim(), 8).unwrap();
            let mut blank = rest[..BLOCK].to_vec();
            blank[148..156].fill(b' ');
            let sum: u32 = blank.iter().map(|byte| u32::from(*byte)).sum();
            assert_eq!(number(148..156), sum);
            assert_eq!(number(136..148), 0);
            let size = number(124..136) as usize;
            all.insert(text(0..100), rest[BLOCK..BLOCK + size].to_vec());
            rest = &rest[BLOCK + size.next_multiple_of(BLOCK)..];
        }
        all
    }

    fn image() -> Vec<u8> {
        let mut out = Vec::new();
        write_image(&mut out, b"\x7fELF binary", "x86_64", "registry/linerate:1.0").unwrap();
        out
    }

    #[test]
    fn every_blob_has_its_digest_and_both_ways_lead_to_the_binary() {
        let all = files(&image());
        for (name, content) in &all {
            if let Some(digest) = name.strip_prefix("blobs/sha256/").filter(|d| !d.is_empty()) {
                assert_eq!(digest, sha256(content));
            }
        }
        let json = |bytes: &[u8]| serde_json::from_slice::<Value>(bytes).unwrap();
        let blob = |digest: &Value| {
            let digest = digest.as_str().unwrap().trim_start_matches("sha256:");
            all[&format!("blobs/sha256/{digest}")].clone()
        };
        let index = json(&all["index.json"]);
        let manifest = json(&blob(&index["manifests"][0]["digest"]));
        let docker = json(&all["manifest.json"]);
        assert_eq!(docker[0]["RepoTags"][0], "registry/linerate:1.0");
        assert_eq!(
            index["manifests"][0]["annotations"]["org.opencontainers.image.ref.name"],
            "1.0"
        );
        let config = json(&blob(&manifest["config"]["digest"]));
        assert_eq!(config["architecture"], "amd64");
        assert_eq!(config["config"]["User"], USER);
        let packed = blob(&manifest["layers"][0]["digest"]);
        assert_eq!(all[docker[0]["Layers"][0].as_str().unwrap()], packed);
        assert_eq!(all[docker[0]["Config"].as_str().unwrap()], blob(&manifest["config"]["digest"]));
        let mut layer = Vec::new();
        flate2::read::GzDecoder::new(&packed[..]).read_to_end(&mut layer).unwrap();
        let diff_id = config["rootfs"]["diff_ids"][0].as_str().unwrap();
        assert_eq!(diff_id, format!("sha256:{}", sha256(&layer)));
        assert_eq!(files(&layer)[PROGRAM], b"\x7fELF binary");
    }

    #[test]
    fn executables_that_need_libraries_are_told_apart() {
        let mut elf = vec![0_u8; 64 + 2 * 56];
        elf[..6].copy_from_slice(b"\x7fELF\x02\x01");
        (elf[18], elf[32], elf[54], elf[56]) = (62, 64, 56, 2);
        assert_eq!(architecture_of(&elf), Ok("x86_64"));
        elf[18] = 183;
        assert_eq!(architecture_of(&elf), Ok("aarch64"));
        elf[64 + 56] = 3;
        assert!(architecture_of(&elf).unwrap_err().contains("libraries"));
        elf[18] = 1;
        assert!(architecture_of(&elf).unwrap_err().contains("architecture"));
        for end in 0..elf.len() {
            let _refused = architecture_of(&elf[..end]);
        }
        assert!(architecture_of(b"#!/bin/sh").is_err());
    }

    #[test]
    fn the_same_binary_gives_the_same_bytes() {
        assert_eq!(image(), image());
    }
}

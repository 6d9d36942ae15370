//! The objects that plans become.

use serde_json::{Value, json};

use super::opening;
use crate::host::kubernetes::{WantedPod, place_of};
use crate::plan::KubernetesHost;

/// The object of a group of pods with all that a plan can say.
fn job_with(host: KubernetesHost) -> Value {
    let mut groups = Vec::new();
    let pod = WantedPod { name: "a".into(), role: "server".into(), host, ports: vec![7] };
    place_of(&opening("run", "first"), &pod, 60, &mut groups);
    groups[0].job()
}

#[test]
fn pods_are_restricted_unless_the_plan_says_otherwise() {
    let job = job_with(KubernetesHost { image: Some("i".into()), ..KubernetesHost::default() });
    let pod = &job["spec"]["template"]["spec"];
    // What the profile `restricted` of Pod Security asks for.
    assert_eq!(pod["securityContext"]["runAsNonRoot"], true);
    assert_eq!(pod["securityContext"]["seccompProfile"]["type"], "RuntimeDefault");
    let container = &pod["containers"][0]["securityContext"];
    assert_eq!(container["allowPrivilegeEscalation"], false);
    assert_eq!(container["capabilities"], json!({ "drop": ["ALL"] }));
    assert_eq!(pod["automountServiceAccountToken"], false);
    assert_eq!(pod["restartPolicy"], "Never");
    assert!(pod["hostNetwork"].is_null() && pod["nodeSelector"].is_null());
    let spread = &pod["topologySpreadConstraints"][0];
    let labels = &job["spec"]["template"]["metadata"]["labels"];
    for (name, value) in spread["labelSelector"]["matchLabels"].as_object().unwrap() {
        assert_eq!(&labels[name], value);
    }
}

/// Members of Kubernetes' own schemas (OpenAPI of batch/v1 and v1, 1.34) that linerate uses.
const MEMBERS: [(&str, &[&str]); 5] = [
    (
        "/spec",
        &[
            "activeDeadlineSeconds",
            "backoffLimit",
            "completionMode",
            "completions",
            "parallelism",
            "template",
            "ttlSecondsAfterFinished",
        ],
    ),
    (
        "/spec/template/spec",
        &[
            "affinity",
            "automountServiceAccountToken",
            "containers",
            "dnsPolicy",
            "enableServiceLinks",
            "hostNetwork",
            "imagePullSecrets",
            "nodeSelector",
            "restartPolicy",
            "runtimeClassName",
            "securityContext",
            "terminationGracePeriodSeconds",
            "tolerations",
            "topologySpreadConstraints",
            "volumes",
        ],
    ),
    (
        "/spec/template/spec/containers/0",
        &[
            "args",
            "env",
            "image",
            "imagePullPolicy",
            "name",
            "ports",
            "resources",
            "securityContext",
            "stdin",
            "stdinOnce",
            "volumeMounts",
        ],
    ),
    (
        "/spec/template/spec/containers/0/securityContext",
        &["allowPrivilegeEscalation", "capabilities", "readOnlyRootFilesystem"],
    ),
    (
        "/spec/template/spec/topologySpreadConstraints/0",
        &["labelSelector", "maxSkew", "topologyKey", "whenUnsatisfiable"],
    ),
];

#[test]
fn members_of_a_job_are_those_of_the_schemas() {
    for job in [job_with(KubernetesHost::default()), job_with(host_with_everything())] {
        for (path, known) in MEMBERS {
            let Some(object) = job.pointer(path) else { continue };
            for name in object.as_object().unwrap().keys() {
                assert!(known.contains(&name.as_str()), "{path}/{name}");
            }
        }
        for count in ["completions", "parallelism", "activeDeadlineSeconds"] {
            assert!(job["spec"][count].is_u64(), "{count}");
        }
        assert!(job.pointer("/spec/template/spec/containers/0/image").unwrap().is_string());
    }
}

fn host_with_everything() -> KubernetesHost {
    let pod = json!({
        "node_selector": { "zone": "a" },
        "tolerations": [{ "operator": "Exists" }],
        "affinity": { "nodeAffinity": {} },
        "resources": { "requests": { "cpu": "500m" } },
        "annotations": { "k8s.v1.cni.cncf.io/networks": "sriov" },
        "runtime_class": "kata",
        "image_pull_policy": "Never",
        "image_pull_secrets": ["key"],
        "security_context": { "runAsUser": 7 },
        "container_security_context": { "capabilities": { "add": ["NET_ADMIN"] } },
        "volumes": [{ "name": "huge", "volume": { "emptyDir": { "medium": "HugePages" } },
                      "mount": { "mountPath": "/dev/hugepages" } }],
    });
    KubernetesHost {
        node: Some("w1".into()),
        host_network: true,
        pod: pod.as_object().unwrap().clone(),
        ..KubernetesHost::default()
    }
}

#[test]
fn members_of_the_plan_are_passed_on() {
    let job = job_with(host_with_everything());
    let template = &job["spec"]["template"];
    let (pod, container) = (&template["spec"], &template["spec"]["containers"][0]);
    assert_eq!(template["metadata"]["annotations"]["k8s.v1.cni.cncf.io/networks"], "sriov");
    let selector = json!({ "zone": "a", "kubernetes.io/hostname": "w1" });
    assert_eq!(pod["nodeSelector"], selector);
    assert_eq!(pod["tolerations"][0]["operator"], "Exists");
    assert!(pod["affinity"].is_object());
    assert_eq!(pod["runtimeClassName"], "kata");
    assert_eq!(pod["imagePullSecrets"], json!([{ "name": "key" }]));
    assert_eq!(pod["hostNetwork"], true);
    assert_eq!(pod["securityContext"]["runAsUser"], 7);
    assert_eq!(pod["securityContext"]["runAsNonRoot"], true);
    assert_eq!(pod["volumes"][1], json!({ "name": "huge", "emptyDir": { "medium": "HugePages" } }));
    assert_eq!(container["imagePullPolicy"], "Never");
    assert_eq!(container["resources"]["requests"]["cpu"], "500m");
    assert_eq!(container["securityContext"]["capabilities"]["add"][0], "NET_ADMIN");
    assert_eq!(container["volumeMounts"][1]["mountPath"], "/dev/hugepages");
    assert!(pod["topologySpreadConstraints"].is_null());
}

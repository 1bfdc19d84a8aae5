//! The files in `deploy` fit together, and the binary accepts what they give it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use http::Method;
use trimtab_cli::proxy::http::HttpClient;
use yaml_rust2::{Yaml, YamlLoader};

use crate::run::{PATIENCE, Served, finished, say, texts};

/// The paths and the host name with which load balancers ask about a proxy.
const READY: &str = "/readyz";
const ALIVE: &str = "/healthz";
const HOST: &str = "trimtab";

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../deploy")
        .join(name)
}

fn documents(name: &str) -> Vec<Yaml> {
    let text = std::fs::read_to_string(file(name)).unwrap();
    YamlLoader::load_from_str(&text).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// The texts of a list, or the keys of a table.
fn names(yaml: &Yaml) -> BTreeSet<String> {
    let keys = yaml.as_hash().into_iter().flat_map(|table| table.keys());
    let texts = yaml.as_vec().into_iter().flatten().chain(keys);
    texts
        .map(|text| text.as_str().unwrap().to_owned())
        .collect()
}

fn texts_of(yaml: &Yaml) -> Vec<String> {
    let list = yaml.as_vec().unwrap().iter();
    list.map(|text| text.as_str().unwrap().to_owned()).collect()
}

/// Fails if the binary does not know the flags.
fn accepts(arguments: &[String]) {
    let folder = tempfile::tempdir().unwrap();
    let settings = file("trimtab.toml").display().to_string();
    let given = arguments.iter().map(|argument| match argument.as_str() {
        "/etc/trimtab/trimtab.toml" => settings.as_str(),
        other => other,
    });
    let mut all: Vec<&str> = given.collect();
    all.push("--help");
    let done = finished(folder.path(), &all);
    assert!(done.status.success(), "{arguments:?}: {}", texts(&done).1);
}

/// Has a program check a file against the schema of its format. Says so if it is not installed.
fn validate(program: &str, arguments: &[&str], name: &str) {
    let path = file(name);
    match Command::new(program).args(arguments).arg(&path).output() {
        Err(error) => say(&format!("SKIPPED: {program} cannot check {name}: {error}")),
        Ok(done) => {
            let (out, error) = texts(&done);
            assert!(done.status.success(), "{name}: {out}{error}");
        }
    }
}

#[test]
fn files_follow_the_schemas_of_compose_kubernetes_and_caddy() {
    let compose = ["--builtin-schema", "vendor.compose-spec"];
    validate("check-jsonschema", &compose, "compose.yaml");
    validate("kubernetes-validate", &["--strict"], "kubernetes.yaml");
    let caddy = ["validate", "--adapter", "caddyfile", "--config"];
    validate("caddy", &caddy, "Caddyfile");
}

#[test]
fn compose_file_connects_services_that_exist() {
    let compose = documents("compose.yaml").remove(0);
    let services = &compose["services"];
    let known = names(services);
    let volumes = names(&compose["volumes"]);
    for name in &known {
        let service = &services[name.as_str()];
        assert!(
            !service["image"].is_badvalue() || !service["build"].is_badvalue(),
            "{name} has an image"
        );
        let needed = names(&service["depends_on"]);
        assert!(needed.is_subset(&known), "{name} needs {needed:?}");
        for mount in service["volumes"].as_vec().into_iter().flatten() {
            let source = mount.as_str().unwrap().split(':').next().unwrap();
            let is_file = source.starts_with("./") && file(source).exists();
            assert!(is_file || volumes.contains(source), "{name}: {source}");
        }
    }
    let proxies: Vec<&String> = known
        .iter()
        .filter(|name| name.starts_with("proxy-"))
        .collect();
    assert_eq!(proxies.len(), 3);
    let caddyfile = std::fs::read_to_string(file("Caddyfile")).unwrap();
    let balanced = caddyfile
        .lines()
        .find_map(|line| line.trim().strip_prefix("reverse_proxy "));
    let balanced: Vec<&str> = balanced.unwrap().split(' ').collect();
    let lines: Vec<&str> = caddyfile.lines().map(str::trim).collect();
    assert!(lines.contains(&&*format!("health_uri {READY}")));
    assert!(lines.contains(&&*format!("Host {HOST}")));
    for proxy in proxies {
        assert!(
            balanced.contains(&&*format!("{proxy}:8787")),
            "{proxy} gets requests"
        );
        let service = &services[proxy.as_str()];
        accepts(&texts_of(&service["command"]));
        let environment = &service["environment"];
        assert!(
            environment["TRIMTAB_STORE"]
                .as_str()
                .unwrap()
                .contains("@database/")
        );
        assert!(
            environment["AWS_ENDPOINT_URL"]
                .as_str()
                .unwrap()
                .contains("//objects:")
        );
        assert_eq!(
            environment["PGPASSWORD"],
            services["database"]["environment"]["POSTGRES_PASSWORD"]
        );
    }
}

#[test]
fn kubernetes_manifests_select_the_proxies() {
    let manifests = documents("kubernetes.yaml");
    let of_kind = |kind: &str| {
        let found = manifests
            .iter()
            .find(|one| one["kind"].as_str() == Some(kind));
        found.unwrap_or_else(|| panic!("no {kind}")).clone()
    };
    for manifest in &manifests {
        assert!(
            manifest["apiVersion"].as_str().is_some()
                && manifest["metadata"]["name"].as_str().is_some()
        );
    }
    let deployment = &of_kind("Deployment")["spec"];
    let template = &deployment["template"];
    let labels = &template["metadata"]["labels"];
    assert_eq!(deployment["selector"]["matchLabels"], *labels);
    assert_eq!(of_kind("Service")["spec"]["selector"], *labels);
    assert_eq!(
        of_kind("PodDisruptionBudget")["spec"]["selector"]["matchLabels"],
        *labels
    );
    let container = &template["spec"]["containers"][0];
    accepts(&texts_of(&container["args"]));
    let secret = of_kind("Secret");
    let named = &container["envFrom"][0]["secretRef"]["name"];
    assert_eq!(*named, secret["metadata"]["name"]);
    assert!(names(&secret["stringData"]).contains("TRIMTAB_STORE"));
    let port = &container["ports"][0];
    assert_eq!(port["containerPort"].as_i64(), Some(8787));
    let target = &of_kind("Service")["spec"]["ports"][0]["targetPort"];
    assert_eq!(*target, port["name"]);
    for (probe, path) in [("readinessProbe", READY), ("livenessProbe", ALIVE)] {
        let get = &container[probe]["httpGet"];
        assert_eq!(get["path"].as_str(), Some(path));
        assert_eq!(get["port"], port["name"]);
        assert_eq!(get["httpHeaders"][0]["value"].as_str(), Some(HOST));
    }
}

#[tokio::test]
async fn proxy_starts_with_the_deployed_settings_and_answers_probes() {
    let settings = file("trimtab.toml").display().to_string();
    let served = Served::start(&["--config", &settings]);
    let client = HttpClient::default();
    for path in [READY, ALIVE] {
        let url = format!("{}{path}", served.url);
        let host = [("host", HOST)];
        let probe = client.send(Method::GET, &url, &host, Vec::new(), PATIENCE);
        assert!(probe.await.unwrap().status.is_success(), "{path}");
    }
}

#[test]
fn container_file_builds_and_runs_the_binary() {
    let text = std::fs::read_to_string(file("Containerfile")).unwrap();
    let manifest = std::fs::read_to_string(file("../crates/cli/Cargo.toml")).unwrap();
    let line = |start: &str| {
        let found = text.lines().find_map(|line| line.strip_prefix(start));
        found.unwrap_or_else(|| panic!("no {start}"))
    };
    let package = line("RUN cargo build ").rsplit(' ').next().unwrap();
    assert!(
        manifest.contains(&format!("name = \"{package}\"")),
        "{package}"
    );
    let command: Vec<String> = serde_json::from_str(line("CMD ")).unwrap();
    accepts(&command);
    let program: Vec<String> = serde_json::from_str(line("ENTRYPOINT ")).unwrap();
    assert!(line("COPY --from=build ").ends_with(&program[0]));
}

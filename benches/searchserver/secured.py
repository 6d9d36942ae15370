"""OpenSearch with its security plugin: TLS, users with passwords, and tokens."""

import base64
import dataclasses
import hashlib
import hmac
import json
import os
import ssl
import subprocess
import time

from .server import OPENSEARCH

SECURED = dataclasses.replace(
    OPENSEARCH,
    name="OpenSearch-security",
    packages=(*OPENSEARCH.packages, ("org.opensearch.plugin", "opensearch-security", "2.19.1.0", "zip")),
)
PLUGIN = "org.opensearch.security.OpenSearchSecurityPlugin"

ADDRESS = "127.0.0.1"
WRITER, STRANGER = "writer", "stranger"
# The password of both is the word `linerate`: the server is on loopback, for the time of a check.
PASSWORD = "linerate"
HASH = "$2y$12$aB4vMBffiw9xS3NsHWa/0ON7avcldcqs6RwmOp0dXv9LplMnMt9M."
TOKEN_KEY = b"a key of the time of a check, which is on loopback alone and has 64"

# What docs/opensearch.md says is needed.
ROLES = {
    "linerate": {
        "cluster_permissions": ["cluster_composite_ops", "cluster_monitor"],
        "index_permissions": [
            {
                "index_patterns": ["cdm*"],
                "allowed_actions": [
                    "create_index",
                    "crud",
                    "indices_monitor",
                    "indices:admin/mapping*",
                    "indices:admin/refresh*",
                ],
            }
        ],
    }
}


class Authority:
    """An authority, `ca`, with a certificate for a server on loopback, and another authority."""

    def __init__(self, place):
        self.place = os.path.join(place, "authority")
        os.makedirs(self.place)
        self.ca, self.other_ca = self.authority("ca"), self.authority("other")
        self.certificate("node")

    def path(self, name):
        return os.path.join(self.place, name)

    def openssl(self, *words):
        subprocess.run(["openssl", *words], check=True, capture_output=True, cwd=self.place)

    def authority(self, name):
        make = ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"]
        make += ["-subj", f"/CN={name}", "-keyout", f"{name}.key", "-out", f"{name}.pem"]
        self.openssl(*make, "-addext", "basicConstraints=critical,CA:TRUE")
        return self.path(f"{name}.pem")

    def certificate(self, name):
        with open(self.path("ext"), "w", encoding="utf-8") as file:
            file.write(f"subjectAltName=IP:{ADDRESS}\n")
        make = ["req", "-newkey", "rsa:2048", "-nodes", "-subj", f"/CN={name}", "-keyout", f"{name}.key", "-out", "csr"]
        self.openssl(*make)
        sign = ["x509", "-req", "-in", "csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2"]
        self.openssl(*sign, "-extfile", "ext", "-out", f"{name}.pem")


class Access(Authority):
    """A certificate for the server, and who may do what there."""

    def __init__(self, place):
        super().__init__(place)
        self.context = ssl.create_default_context(cafile=self.ca)
        self.headers = {"Authorization": "Basic " + base64.b64encode(f"{WRITER}:{PASSWORD}".encode()).decode()}

    def configure(self, config):
        """Writes the plugin's own documents to a server's folder of configuration; the words for its program."""
        write_documents(os.path.join(config, "opensearch-security"))
        settings = {"allow_default_init_securityindex": "true", "nodes_dn": "CN=node"}
        settings["ssl.transport.enforce_hostname_verification"] = "false"
        settings["ssl.http.enabled"] = "true"
        for where in ("transport", "http"):
            # The server reads no file that is not in its folder.
            for what, name in (("pemcert", "node.pem"), ("pemkey", "node.key"), ("pemtrustedcas", "ca.pem")):
                with open(self.path(name), "rb") as source, open(os.path.join(config, name), "wb") as copy:
                    copy.write(source.read())
                settings[f"ssl.{where}.{what}_filepath"] = name
        return [f"plugin={PLUGIN}", *(f"plugins.security.{name}={value}" for name, value in settings.items())]


def write_documents(place):
    os.makedirs(place)
    basic = {"type": "basic", "challenge": False}
    token = {"type": "jwt", "challenge": False, "config": {}}
    token["config"] = {"signing_key": base64.b64encode(TOKEN_KEY).decode(), "jwt_header": "Authorization"}
    domains = {}
    for order, (name, authenticator, backend) in enumerate((("basic", basic, "intern"), ("token", token, "noop"))):
        domains[name] = {
            "http_enabled": True,
            "transport_enabled": True,
            "order": order,
            "http_authenticator": authenticator,
            "authentication_backend": {"type": backend},
        }
    documents = {
        "config": {"config": {"dynamic": {"http": {"anonymous_auth_enabled": False}, "authc": domains}}},
        "internalusers": {user: {"hash": HASH} for user in (WRITER, STRANGER)},
        "roles": ROLES,
        "rolesmapping": {"linerate": {"users": [WRITER]}},
        "actiongroups": {},
        "tenants": {},
        "nodesdn": {},
        "allowlist": {"config": {"enabled": False, "requests": {}}},
        "whitelist": {"config": {"enabled": False, "requests": {}}},
        "audit": {"config": {"enabled": False}},
    }
    files = {"internalusers": "internal_users", "rolesmapping": "roles_mapping", "actiongroups": "action_groups"}
    files["nodesdn"] = "nodes_dn"
    for kind, content in documents.items():
        # JSON is YAML.
        with open(os.path.join(place, f"{files.get(kind, kind)}.yml"), "w", encoding="utf-8") as file:
            json.dump({"_meta": {"type": kind, "config_version": 2}, **content}, file)


def token_of(user):
    """A token (JSON Web Token, RFC 7519) that the server takes for this user."""
    encode = lambda part: base64.urlsafe_b64encode(part).rstrip(b"=")  # noqa: E731
    claims = {"sub": user, "exp": int(time.time()) + 3600}
    text = b".".join(encode(json.dumps(part).encode()) for part in ({"alg": "HS512", "typ": "JWT"}, claims))
    return (text + b"." + encode(hmac.new(TOKEN_KEY, text, hashlib.sha512).digest())).decode()

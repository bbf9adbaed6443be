"""Drives the code flow with Authlib. Reads the client as JSON, prints the authorization URL, reads the callback URL,
and prints what the client got as JSON."""

import json
import os
import sys

os.environ["AUTHLIB_INSECURE_TRANSPORT"] = "1"

import httpx
from authlib.common.security import generate_token
from authlib.integrations.httpx_client import OAuth2Client
from authlib.jose import JsonWebKey, jwt
from authlib.oidc.core import CodeIDToken

given = json.loads(sys.stdin.readline())
metadata = httpx.get(given["issuer"] + "/.well-known/openid-configuration").json()
client = OAuth2Client(
    given["client_id"],
    given["client_secret"],
    scope="openid email offline_access contract:read",
    redirect_uri=given["redirect_uri"],
    code_challenge_method="S256",
    token_endpoint_auth_method="client_secret_basic",
)
verifier, nonce = generate_token(48), generate_token(24)
url, state = client.create_authorization_url(
    metadata["authorization_endpoint"], code_verifier=verifier, nonce=nonce, prompt="consent"
)
print(url, flush=True)
callback = sys.stdin.readline().strip()
token = dict(
    client.fetch_token(
        metadata["token_endpoint"], authorization_response=callback, code_verifier=verifier, state=state
    )
)
claims = jwt.decode(
    token["id_token"],
    JsonWebKey.import_key_set(httpx.get(metadata["jwks_uri"]).json()),
    claims_cls=CodeIDToken,
    claims_options={
        "iss": {"essential": True, "value": metadata["issuer"]},
        "aud": {"essential": True, "value": given["client_id"]},
        "nonce": {"essential": True, "value": nonce},
    },
)
claims.validate()
userinfo = client.get(metadata["userinfo_endpoint"]).json()
refreshed = dict(client.refresh_token(metadata["token_endpoint"], refresh_token=token["refresh_token"]))


def introspect(value):
    return client.introspect_token(metadata["introspection_endpoint"], token=value).json()


before = introspect(refreshed["access_token"])
client.revoke_token(metadata["revocation_endpoint"], token=refreshed["refresh_token"], token_type_hint="refresh_token")
after = introspect(refreshed["access_token"])
print(
    json.dumps(
        {
            "claims": dict(claims),
            "userinfo": userinfo,
            "is_rotated": refreshed["refresh_token"] != token["refresh_token"],
            "before": before,
            "after": after,
        }
    ),
    flush=True,
)

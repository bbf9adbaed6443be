# python3 asymmetric.py <public key> <webhook-id> <webhook-timestamp> <webhook-signature> [unix seconds] < body
# prints "ok" or the reason (Python 3.7 or newer, with the package cryptography)
import base64
import re
import sys
import time

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

TOLERANCE_SECONDS = 300


def verify(public_key: str, webhook_id: str, timestamp: str, signature: str, raw_body: bytes, now: int) -> str:
    """Return "ok" or the reason for refusing.

    public_key is the whole "whpk_..." string, the next three are the values of webhook-id, webhook-timestamp and
    webhook-signature, raw_body the bytes as they arrived (never parsed JSON), now Unix seconds.
    """
    if not re.fullmatch(r"[!-\-/-~]{1,256}", webhook_id) or not re.fullmatch("0|[1-9][0-9]{0,11}", timestamp):
        return "header_malformed"
    tokens = signature.split(" ")
    if not all(re.fullmatch(r"v[0-9]+[a-z]*,[A-Za-z0-9+/=_-]+", token) for token in tokens):
        return "header_malformed"
    signatures = [token[4:] for token in tokens if token.startswith("v1a,")]
    if not signatures or not all(re.fullmatch("[A-Za-z0-9+/]{85}[AQgw]==", s) for s in signatures):
        return "header_malformed"

    age = now - int(timestamp)
    if age > TOLERANCE_SECONDS:
        return "timestamp_too_old"
    if age < -TOLERANCE_SECONDS:
        return "timestamp_too_new"

    key = Ed25519PublicKey.from_public_bytes(base64.b64decode(public_key[len("whpk_") :]))
    signed = f"{webhook_id}.{timestamp}.".encode() + raw_body
    for text in signatures:
        try:
            key.verify(base64.b64decode(text), signed)
            return "ok"
        except InvalidSignature:
            pass
    return "signature_mismatch"


if __name__ == "__main__":
    seconds = int(sys.argv[5]) if len(sys.argv) > 5 else int(time.time())
    result = verify(*sys.argv[1:5], sys.stdin.buffer.read(), seconds)
    print(result)
    sys.exit(0 if result == "ok" else 1)

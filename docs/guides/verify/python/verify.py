# python3 verify.py <secret> <header> [unix seconds] < body    prints "ok" or the reason (Python 3.6 or newer)
import hashlib
import hmac
import re
import sys
import time

TOLERANCE_SECONDS = 300
PART = r"[a-z][a-z0-9]*=[!-+\--~]+"


def verify(secret: str, header: str, raw_body: bytes, now: int) -> str:
    """Return "ok" or the reason for refusing.

    secret is the whole "whsec_..." string, header the value of x-service-signature,
    raw_body the bytes as they arrived (never parsed JSON), now Unix seconds.
    """
    if not re.fullmatch(f"{PART}(,{PART})*", header):
        return "header_malformed"
    parts = [part.split("=", 1) for part in header.split(",")]
    times = [value for name, value in parts if name == "t"]
    signatures = [value for name, value in parts if name == "v1"]
    if len(times) != 1 or not re.fullmatch("0|[1-9][0-9]{0,11}", times[0]):
        return "header_malformed"
    if not signatures or not all(re.fullmatch("[0-9a-f]{64}", s) for s in signatures):
        return "header_malformed"

    age = now - int(times[0])
    if age > TOLERANCE_SECONDS:
        return "timestamp_too_old"
    if age < -TOLERANCE_SECONDS:
        return "timestamp_too_new"

    signed = times[0].encode() + b"." + raw_body
    expected = hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest()
    is_signed = any(hmac.compare_digest(s, expected) for s in signatures)
    return "ok" if is_signed else "signature_mismatch"


if __name__ == "__main__":
    seconds = int(sys.argv[3]) if len(sys.argv) > 3 else int(time.time())
    result = verify(sys.argv[1], sys.argv[2], sys.stdin.buffer.read(), seconds)
    print(result)
    sys.exit(0 if result == "ok" else 1)

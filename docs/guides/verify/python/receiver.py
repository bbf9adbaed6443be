# WEBHOOK_SECRET=whsec_... python3 receiver.py    a receiver on PORT (4000), with verify.py beside it (Python 3.7 or newer)
import json
import os
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from verify import verify

SECRET = os.environ["WEBHOOK_SECRET"]
LIMIT_BYTES = 1024 * 1024


class Receiver(BaseHTTPRequestHandler):
    timeout = 15  # seconds that a sender may be silent

    def do_POST(self) -> None:
        length = self.headers.get("content-length", "")
        if not length.isdecimal() or len(length) > 7 or int(length) > LIMIT_BYTES:
            return self.answer(413, "body_too_large")
        raw_body = self.rfile.read(int(length))
        header = self.headers.get("x-service-signature", "")
        result = verify(SECRET, header, raw_body, int(time.time()))
        if result != "ok":
            return self.answer(401, result)
        event = json.loads(raw_body)
        # Store the event here, once for each id: a retry repeats it. Process it after the answer.
        print(event["type"], event["id"], flush=True)
        self.answer(200, "ok")

    def answer(self, status: int, text: str) -> None:
        self.close_connection = True
        self.send_response(status)
        self.send_header("content-type", "text/plain")
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", int(os.environ.get("PORT", "4000"))), Receiver)
    print("The receiver listens on port", server.server_port, flush=True)
    server.serve_forever()

"""The main job through the packed client: a change becomes a signed webhook that arrives and is in the ledger."""

import json
import os
import queue
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from signalbox import AuthenticatedClient
from signalbox.api.contract import contract_create, contract_update
from signalbox.api.identity import account_create
from signalbox.api.webhook import event_find_all, webhook_create, webhook_dispatch_find_all, webhook_event_set
from signalbox.models import (
    ContractStatus,
    CreateAccount,
    CreateContract,
    CreateWebhook,
    ReplaceEventSet,
    UpdateContract,
)
from signalbox.problems import ProblemError, unwrap
from signalbox.webhooks import verify

LIMIT_SECONDS = 60

arrived: queue.Queue[tuple[str, bytes]] = queue.Queue()


class Receiver(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        self.send_response(200)
        self.send_header("content-length", "0")
        self.end_headers()
        arrived.put((self.headers["x-service-signature"], body))

    def log_message(self, *_: object) -> None:
        pass


def main() -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    client = AuthenticatedClient(base_url=os.environ["SIGNALBOX_URL"], token=os.environ["SIGNALBOX_TOKEN"])

    account = unwrap(account_create.sync(client=client, body=CreateAccount(name="Python"))).data.document_id
    new_webhook = CreateWebhook(url=f"http://127.0.0.1:{server.server_port}/", account=account)
    webhook = unwrap(webhook_create.sync(client=client, body=new_webhook)).data
    event_types = unwrap(event_find_all.sync(client=client, filters=["internal|eq|contract.update"])).data
    events = ReplaceEventSet(events=[str(event_types[0].document_id)])
    unwrap(webhook_event_set.sync(webhook.document_id, client=client, body=events))

    new_contract = CreateContract(account=account, name="Lease")
    contract = unwrap(contract_create.sync(client=client, body=new_contract, idempotency_key="python-1")).data
    same = unwrap(contract_create.sync(client=client, body=new_contract, idempotency_key="python-1")).data
    assert same.document_id == contract.document_id
    change = UpdateContract(status=ContractStatus.ACTIVE)
    unwrap(contract_update.sync(contract.document_id, client=client, body=change))

    signature, body = arrived.get(timeout=LIMIT_SECONDS)
    assert verify(webhook.secret, signature, body, int(time.time())) == "ok"
    assert verify(webhook.secret, signature, body + b" ", int(time.time())) == "signature_mismatch"
    envelope = json.loads(body)
    assert envelope["type"] == "contract.update"
    assert envelope["data"]["id"] == str(contract.document_id)

    until = time.monotonic() + LIMIT_SECONDS
    while True:
        rows = unwrap(webhook_dispatch_find_all.sync(client=client, filters=[f"webhook|eq|{webhook.document_id}"])).data
        if [row.status.value for row in rows] == ["success"]:
            break
        assert time.monotonic() < until, rows
        time.sleep(0.05)

    try:
        unwrap(contract_create.sync(client=client, body=CreateContract(account=account, name="")))
        raise AssertionError("an empty name was accepted")
    except ProblemError as error:
        assert error.code == "validation_failed", error
    print("python: the change arrived, verified, and is in the ledger")


main()

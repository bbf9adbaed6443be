package signalbox_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
	"time"

	signalbox "signalbox.example/go"
	"signalbox.example/go/webhooks"
)

const limit = 60 * time.Second

type arrival struct {
	signature string
	body      []byte
}

// The main job through the client: a change becomes a signed webhook that arrives and is in the ledger.
func TestMainJob(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*limit)
	defer cancel()
	arrived := make(chan arrival, 10)
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		arrived <- arrival{r.Header.Get("x-service-signature"), body}
	}))
	defer receiver.Close()
	client, err := signalbox.NewBearerClient(os.Getenv("SIGNALBOX_URL"), os.Getenv("SIGNALBOX_TOKEN"))
	if err != nil {
		t.Fatal(err)
	}
	check := func(answer signalbox.Answer, err error) {
		t.Helper()
		if err := signalbox.Check(answer, err); err != nil {
			t.Fatal(err)
		}
	}

	madeAccount, err := client.AccountCreateWithResponse(ctx, nil, signalbox.CreateAccount{Name: "Go"})
	check(madeAccount, err)
	account := madeAccount.JSON201.Data.DocumentId
	url := receiver.URL + "/"
	madeWebhook, err := client.WebhookCreateWithResponse(ctx, nil, signalbox.CreateWebhook{Url: &url, Account: &account})
	check(madeWebhook, err)
	webhook := madeWebhook.JSON201.Data
	filters := []string{"internal|eq|contract.update"}
	eventTypes, err := client.EventFindAllWithResponse(ctx, &signalbox.EventFindAllParams{Filters: &filters})
	check(eventTypes, err)
	events := signalbox.ReplaceEventSet{Events: []string{eventTypes.JSON200.Data[0].DocumentId.String()}}
	set, err := client.WebhookEventSetWithResponse(ctx, webhook.DocumentId, nil, events)
	check(set, err)

	key := "go-1"
	params := &signalbox.ContractCreateParams{IdempotencyKey: &key}
	newContract := signalbox.CreateContract{Account: account, Name: "Lease"}
	madeContract, err := client.ContractCreateWithResponse(ctx, params, newContract)
	check(madeContract, err)
	contract := madeContract.JSON201.Data.DocumentId
	repeated, err := client.ContractCreateWithResponse(ctx, params, newContract)
	check(repeated, err)
	if repeated.JSON201.Data.DocumentId != contract {
		t.Fatal("a repeated request made a second contract")
	}
	status := signalbox.ContractStatusActive
	changed, err := client.ContractUpdateWithResponse(ctx, contract, nil, signalbox.UpdateContract{Status: &status})
	check(changed, err)

	var got arrival
	select {
	case got = <-arrived:
	case <-time.After(limit):
		t.Fatal("nothing arrived")
	}
	now := time.Now().Unix()
	if result := webhooks.Verify(*webhook.Secret, got.signature, got.body, now); result != "ok" {
		t.Fatal(result)
	}
	if result := webhooks.Verify(*webhook.Secret, got.signature, append(got.body, ' '), now); result != "signature_mismatch" {
		t.Fatal(result)
	}
	var envelope struct {
		Type string
		Data struct{ ID string }
	}
	err = json.Unmarshal(got.body, &envelope)
	if err != nil || envelope.Type != "contract.update" || envelope.Data.ID != contract.String() {
		t.Fatal(err, string(got.body))
	}

	ofWebhook := []string{"webhook|eq|" + webhook.DocumentId.String()}
	for until := time.Now().Add(limit); ; time.Sleep(50 * time.Millisecond) {
		rows, err := client.WebhookDispatchFindAllWithResponse(ctx, &signalbox.WebhookDispatchFindAllParams{Filters: &ofWebhook})
		check(rows, err)
		if len(rows.JSON200.Data) == 1 && rows.JSON200.Data[0].Status == "success" {
			break
		}
		if time.Now().After(until) {
			t.Fatal("the ledger has no success", string(rows.Body))
		}
	}

	refused, err := client.ContractCreateWithResponse(ctx, nil, signalbox.CreateContract{Account: account, Name: ""})
	var problem *signalbox.ProblemError
	if !errors.As(signalbox.Check(refused, err), &problem) || problem.Code != "validation_failed" || problem.Status != 422 {
		t.Fatal(problem)
	}
}

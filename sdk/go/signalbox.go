package signalbox

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
)

// ProblemError is a refusal (RFC 9457). Code is stable; Status is that of the answer.
type ProblemError struct {
	Code      string `json:"code"`
	Status    int    `json:"status"`
	Detail    string `json:"detail"`
	RequestID string `json:"request_id"`
}

func (e *ProblemError) Error() string {
	return fmt.Sprintf("%s: %s (status %d, request %s)", e.Code, e.Detail, e.Status, e.RequestID)
}

// Answer is what every call of the client returns.
type Answer interface {
	StatusCode() int
	GetBody() []byte
}

// NewBearerClient returns a client of the service at url, which sends the token with each call.
func NewBearerClient(url, token string) (*ClientWithResponses, error) {
	bearer := func(_ context.Context, request *http.Request) error {
		request.Header.Set("Authorization", "Bearer "+token)
		return nil
	}
	return NewClientWithResponses(url, WithRequestEditorFn(bearer))
}

// Check returns err, or the refusal that the answer is; nil for a success.
func Check(answer Answer, err error) error {
	if err != nil {
		return err
	}
	status := answer.StatusCode()
	if status >= 200 && status < 300 {
		return nil
	}
	problem := ProblemError{Status: status}
	if json.Unmarshal(answer.GetBody(), &problem) != nil || problem.Code == "" {
		problem.Code = "unknown"
	}
	return &problem
}

// The function alone; receiver.go below calls it (Go 1.18 or newer)
package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"strconv"
	"strings"
)

const toleranceSeconds = 300

var (
	headerForm    = regexp.MustCompile(`^[a-z][a-z0-9]*=[!-+\--~]+(,[a-z][a-z0-9]*=[!-+\--~]+)*$`)
	secondsForm   = regexp.MustCompile(`^(0|[1-9][0-9]{0,11})$`)
	signatureForm = regexp.MustCompile(`^[0-9a-f]{64}$`)
)

// Verify returns "ok" or the reason for refusing. secret is the whole "whsec_..." string, header the value of
// x-service-signature, rawBody the bytes as they arrived (never re-marshalled JSON), now Unix seconds.
func Verify(secret, header string, rawBody []byte, now int64) string {
	if !headerForm.MatchString(header) {
		return "header_malformed"
	}
	var times, signatures []string
	for _, part := range strings.Split(header, ",") {
		name, value, _ := strings.Cut(part, "=")
		switch name {
		case "t":
			times = append(times, value)
		case "v1":
			signatures = append(signatures, value)
		}
	}
	if len(times) != 1 || !secondsForm.MatchString(times[0]) || len(signatures) == 0 {
		return "header_malformed"
	}
	for _, signature := range signatures {
		if !signatureForm.MatchString(signature) {
			return "header_malformed"
		}
	}

	signedAt, _ := strconv.ParseInt(times[0], 10, 64)
	if now-signedAt > toleranceSeconds {
		return "timestamp_too_old"
	}
	if signedAt-now > toleranceSeconds {
		return "timestamp_too_new"
	}

	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(times[0] + "."))
	mac.Write(rawBody)
	expected := mac.Sum(nil)
	for _, signature := range signatures {
		candidate, _ := hex.DecodeString(signature)
		if hmac.Equal(candidate, expected) {
			return "ok"
		}
	}
	return "signature_mismatch"
}

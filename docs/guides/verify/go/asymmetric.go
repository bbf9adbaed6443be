// go run asymmetric.go <public key> <webhook-id> <webhook-timestamp> <webhook-signature> [unix seconds] < body
// prints "ok" or the reason (Go 1.18 or newer)
package main

import (
	"crypto/ed25519"
	"encoding/base64"
	"fmt"
	"io"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"
)

const toleranceSeconds = 300

var (
	idForm        = regexp.MustCompile(`^[!-\-/-~]{1,256}$`)
	secondsForm   = regexp.MustCompile(`^(0|[1-9][0-9]{0,11})$`)
	tokenForm     = regexp.MustCompile(`^v[0-9]+[a-z]*,[A-Za-z0-9+/=_-]+$`)
	signatureForm = regexp.MustCompile(`^[A-Za-z0-9+/]{85}[AQgw]==$`)
)

// Verify returns "ok" or the reason for refusing. publicKey is the whole "whpk_..." string, id, timestamp and signature
// are the values of webhook-id, webhook-timestamp and webhook-signature, rawBody the bytes as they arrived, now Unix seconds.
func Verify(publicKey, id, timestamp, signature string, rawBody []byte, now int64) string {
	if !idForm.MatchString(id) || !secondsForm.MatchString(timestamp) {
		return "header_malformed"
	}
	var signatures [][]byte
	for _, token := range strings.Split(signature, " ") {
		if !tokenForm.MatchString(token) {
			return "header_malformed"
		}
		if text := strings.TrimPrefix(token, "v1a,"); text != token {
			bytes, err := base64.StdEncoding.DecodeString(text)
			if err != nil || !signatureForm.MatchString(text) {
				return "header_malformed"
			}
			signatures = append(signatures, bytes)
		}
	}
	if len(signatures) == 0 {
		return "header_malformed"
	}

	seconds, _ := strconv.ParseInt(timestamp, 10, 64)
	if now-seconds > toleranceSeconds {
		return "timestamp_too_old"
	}
	if now-seconds < -toleranceSeconds {
		return "timestamp_too_new"
	}

	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(publicKey, "whpk_"))
	if err != nil || len(key) != ed25519.PublicKeySize {
		panic("the public key is not whpk_ and the base64 of 32 bytes")
	}
	signed := append([]byte(id+"."+timestamp+"."), rawBody...)
	for _, bytes := range signatures {
		if ed25519.Verify(key, signed, bytes) {
			return "ok"
		}
	}
	return "signature_mismatch"
}

func main() {
	now := time.Now().Unix()
	if len(os.Args) > 5 {
		now, _ = strconv.ParseInt(os.Args[5], 10, 64)
	}
	body, err := io.ReadAll(os.Stdin)
	if err != nil {
		panic(err)
	}
	result := Verify(os.Args[1], os.Args[2], os.Args[3], os.Args[4], body, now)
	fmt.Println(result)
	if result != "ok" {
		os.Exit(1)
	}
}

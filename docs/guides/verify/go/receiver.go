// WEBHOOK_SECRET=whsec_... go run receiver.go verify.go    a receiver on PORT (4000), with verify.go beside it (Go 1.18 or newer)
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"time"
)

const limitBytes = 1 << 20

func receive(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		http.Error(w, "post_only", http.StatusMethodNotAllowed)
		return
	}
	rawBody, err := io.ReadAll(http.MaxBytesReader(w, r.Body, limitBytes))
	if err != nil {
		http.Error(w, "body_too_large", http.StatusRequestEntityTooLarge)
		return
	}
	header := r.Header.Get("x-service-signature")
	if result := Verify(os.Getenv("WEBHOOK_SECRET"), header, rawBody, time.Now().Unix()); result != "ok" {
		http.Error(w, result, http.StatusUnauthorized)
		return
	}
	var event struct{ ID, Type string }
	if err := json.Unmarshal(rawBody, &event); err != nil {
		http.Error(w, "body_malformed", http.StatusBadRequest)
		return
	}
	// Store the event here, once for each id: a retry repeats it. Process it after the answer.
	fmt.Println(event.Type, event.ID)
	io.WriteString(w, "ok")
}

func main() {
	if os.Getenv("WEBHOOK_SECRET") == "" {
		log.Fatal("WEBHOOK_SECRET is not set")
	}
	port := os.Getenv("PORT")
	if port == "" {
		port = "4000"
	}
	listener, err := net.Listen("tcp", "127.0.0.1:"+port)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("The receiver listens on port", listener.Addr().(*net.TCPAddr).Port)
	server := &http.Server{Handler: http.HandlerFunc(receive), ReadTimeout: 15 * time.Second, WriteTimeout: 15 * time.Second}
	log.Fatal(server.Serve(listener))
}

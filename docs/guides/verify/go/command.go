// go run command.go verify.go <secret> <header> [unix seconds] < body    prints "ok" or the reason
package main

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"time"
)

func main() {
	now := time.Now().Unix()
	if len(os.Args) > 3 {
		now, _ = strconv.ParseInt(os.Args[3], 10, 64)
	}
	rawBody, _ := io.ReadAll(os.Stdin)
	result := Verify(os.Args[1], os.Args[2], rawBody, now)
	fmt.Println(result)
	if result != "ok" {
		os.Exit(1)
	}
}

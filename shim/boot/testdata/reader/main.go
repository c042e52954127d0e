// Command reader prints the real path in a shim's record.
package main

import (
	"fmt"
	"os"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/shim/record"
)

func main() {
	text, err := os.ReadFile(os.Args[1])
	if err != nil {
		panic(err)
	}
	r, ok, err := record.Read(text)
	if !ok || err != nil {
		panic(err)
	}
	if _, err := record.Patch(text, r); err != nil {
		panic(err)
	}
	fmt.Println(r.Real)
}

// Command witness tries operations on paths and says how each ended. It is
// the program that the tests put behind the shim, since a shell hides errno.
//
// Its first argument is a JSON list of tries; the others are for the policy. Its
// output is a JSON list of results.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// A try is one operation. To is a second path, a file system type or a number,
// as the operation needs.
type try struct{ Op, Path, To string }

// A result is the errno's name, or "ok", and what was read or the error's text.
type result struct{ Errno, Data string }

func main() {
	var tries []try
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "witness: want an argument")
		os.Exit(2)
	}
	if err := json.Unmarshal([]byte(os.Args[1]), &tries); err != nil {
		fmt.Fprintln(os.Stderr, "witness:", err)
		os.Exit(2)
	}
	out := make([]result, 0, len(tries))
	for _, t := range tries {
		op, ok := operations[t.Op]
		if !ok {
			fmt.Fprintf(os.Stderr, "witness: unknown operation %q\n", t.Op)
			os.Exit(2)
		}
		data, err := op(t.Path, t.To)
		if err != nil {
			data = err.Error()
		}
		out = append(out, result{Errno: name(err), Data: data})
	}
	if err := json.NewEncoder(os.Stdout).Encode(out); err != nil {
		fmt.Fprintln(os.Stderr, "witness:", err)
		os.Exit(2)
	}
}

// name returns the errno's name, "ok" for none.
func name(err error) string {
	if err == nil {
		return "ok"
	}
	for {
		if e, ok := err.(syscall.Errno); ok {
			return unix.ErrnoName(e)
		}
		u, ok := err.(interface{ Unwrap() error })
		if !ok {
			return strings.ReplaceAll(err.Error(), "\n", " ")
		}
		err = u.Unwrap()
	}
}

package bare

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
)

// An Account is what a witness wrote: items in order.
type Account []Item

// An Item is one thing that the witness looked at.
type Item struct{ Name, Value string }

// ParseAccount reads what a witness wrote.
func ParseAccount(data []byte) (Account, error) {
	var a Account
	for len(data) > 0 {
		head, rest, ok := bytes.Cut(data, []byte("\n"))
		i := bytes.LastIndexByte(head, ' ')
		if !ok || i < 0 {
			return nil, fmt.Errorf("item %d: no header in %.80q", len(a), data)
		}
		n, err := strconv.ParseUint(string(head[i+1:]), 16, 64)
		if err != nil || uint64(len(rest)) < n+1 || rest[n] != '\n' {
			return nil, fmt.Errorf("item %q: length %q", head[:i], head[i+1:])
		}
		a = append(a, Item{string(head[:i]), string(rest[:n])})
		data = rest[n+1:]
	}
	return a, nil
}

// Get returns the first item of that name, or "".
func (a Account) Get(name string) string {
	for _, item := range a {
		if item.Name == name {
			return item.Value
		}
	}
	return ""
}

// Status returns a line of /proc/self/status.
func (a Account) Status(name string) string {
	for line := range strings.Lines(a.Get("status")) {
		if v, ok := strings.CutPrefix(line, name+":"); ok {
			return strings.TrimSpace(v)
		}
	}
	return ""
}

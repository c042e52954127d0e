package rules

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/pathcheck"
)

// A fence is one fenced block of a Markdown page.
type fence struct {
	line int
	info string
	body string
}

// fences finds the blocks fenced by three back quotes, indented or not.
func fences(text string) []fence {
	var list []fence
	var body []string
	open := -1
	for i, line := range strings.Split(text, "\n") {
		trimmed := strings.TrimSpace(line)
		switch {
		case open < 0 && strings.HasPrefix(trimmed, "```"):
			open = i
			list = append(list, fence{line: i + 1, info: strings.Join(strings.Fields(trimmed[3:]), " ")})
		case open >= 0 && trimmed == "```":
			list[len(list)-1].body = strings.Join(body, "\n")
			open, body = -1, nil
		case open >= 0:
			body = append(body, line)
		}
	}
	return list
}

// pages returns README.md, when there is one, and docs/*.md.
func pages(t *testing.T) []string {
	t.Helper()
	list, err := filepath.Glob("../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	switch _, err := os.Stat("../README.md"); {
	case err == nil:
		list = append(list, "../README.md")
	case !errors.Is(err, fs.ErrNotExist):
		t.Fatal(err)
	}
	return list
}

// checkOpens returns an error when an exposed template can never open anything,
// because a plain path hides the directory that it lies in.
func checkOpens(p *Policy) error {
	for _, e := range p.Exposed {
		for _, h := range p.Hidden {
			if e.Template != nil && h.Template == nil && pathcheck.Within(h.Path, e.Template.Beneath) {
				return fmt.Errorf("the plain path %s hides what %s is to open", h.Path, e.Template.Path)
			}
		}
	}
	return nil
}

// checkFence returns what is wrong with a block, or nil: a policy or a profile
// must parse, a policy called invalid must not, and a report must be JSON.
func checkFence(f fence) error {
	switch f.info {
	case "json":
		p, err := Parse([]byte(f.body))
		if err != nil {
			return err
		}
		return checkOpens(p)
	case "json profile":
		_, err := parseProfile("page", []byte(f.body))
		return err
	case "json invalid":
		if _, err := Parse([]byte(f.body)); err == nil {
			return errors.New("the block is called invalid, and parses")
		}
	case "json report":
		if !json.Valid([]byte(f.body)) {
			return errors.New("not JSON")
		}
	default:
		if strings.HasPrefix(f.info, "json") {
			return errors.New("unknown kind of block: want json, json invalid, json profile or json report")
		}
	}
	return nil
}

func TestDocs(t *testing.T) {
	count := map[string]int{}
	for _, page := range pages(t) {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range fences(string(text)) {
			count[f.info]++
			if err := checkFence(f); err != nil {
				t.Errorf("%s:%d: ```%s: %v", page, f.line, f.info, err)
			}
		}
	}
	// The pages hold an example a key; fewer mean that none was found.
	if count["json"] < 10 || count["json invalid"] < 1 {
		t.Errorf("blocks found: %v", count)
	}
}

// Every key has its heading in the policy reference, and no other has.
func TestDocsNameEveryKey(t *testing.T) {
	text, err := os.ReadFile("../docs/policy.md")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]bool{
		"version": true, "required": true, "hidden": true, "exposed": true, "precreate": true,
		"frozen": true, "scope": true, "capabilities": true, "env": true, "program": true,
		"report": true, "log": true, "workspace": true, "writable": true, "toolchainDirs": true,
		"profile": true, "root": true, "network": true, "isolate": true, "descriptors": true, "audit": true, "commandCheck": true,
	}
	got := map[string]bool{}
	for _, m := range regexp.MustCompile("(?m)^### `(\\w+)`$").FindAllStringSubmatch(string(text), -1) {
		got[m[1]] = true
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("headings (-want +got)\n%s", diff)
	}
	for key := range want {
		if !strings.Contains(string(text), "\n| [`"+key+"`](#"+strings.ToLower(key)+") | ") {
			t.Errorf("%s is not in the table of keys", key)
		}
		_, err := Parse([]byte(`{"version":1,"` + key + `":0}`))
		if err == nil || strings.Contains(err.Error(), "unknown key") {
			t.Errorf("%s is documented, and Parse says %v", key, err)
		}
	}
}

func TestFences(t *testing.T) {
	const page = "a\n```json\n{\"version\":1,\n\"required\":true}\n```\n\n- b\n  ```json  invalid\n  {}\n  ```\n```\n```\n```sh\n"
	want := []fence{
		{2, "json", "{\"version\":1,\n\"required\":true}"},
		{8, "json invalid", "  {}"},
		{11, "", ""},
		{13, "sh", ""},
	}
	if diff := cmp.Diff(want, fences(page), cmp.AllowUnexported(fence{})); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	for _, row := range []struct {
		fence fence
		ok    bool
	}{
		{fence{info: "json", body: `{"version":1}`}, true},
		{fence{info: "json", body: `{"version":2}`}, false},
		{fence{info: "json invalid", body: `{"version":2}`}, true},
		{fence{info: "json invalid", body: `{"version":1}`}, false},
		{fence{info: "json report", body: `{"pid":1}`}, true},
		{fence{info: "json report", body: `{"pid":`}, false},
		{fence{info: "jsonc", body: `{}`}, false},
		{fence{info: "sh", body: `{`}, true},
	} {
		if err := checkFence(row.fence); (err == nil) != row.ok {
			t.Errorf("%+v: %v", row.fence, err)
		}
	}
}

package runscope

import (
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/tests/integration/launch"
)

// swap exchanges two names over and over until stop is called, which reports how
// often it did.
func swap(t *testing.T, a, b string) (stop func() int64) {
	t.Helper()
	var n atomic.Int64
	var end atomic.Bool
	done := make(chan error, 1)
	go func() {
		for !end.Load() {
			if err := unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE); err != nil {
				done <- err
				return
			}
			n.Add(1)
		}
		done <- nil
	}()
	return func() int64 {
		end.Store(true)
		if err := <-done; err != nil {
			t.Error(err)
		}
		return n.Load()
	}
}

// TestExchangedEntriesOpenNothing: what a template names is exchanged with something of others while
// launches start. A launch runs with its own or does not run.
func TestExchangedEntriesOpenNothing(t *testing.T) {
	for _, tt := range []struct {
		name, path string
		put        func(w *world, path string) error
		read       string
	}{
		{"session and a link to another", "$R/durable-sessions/own-scope", linkToOther.put, "$R/durable-sessions/own-scope/f"},
		{"OpenCode directory and a link to another", "$R/opencode/own-session", linkToOther.put, "$R/opencode/own-session/f"},
		{"configured directory and a link to secrets", "$W/oc", linkToSecrets.put, "$W/oc/f"},
		{"trace and a link to a secret", "$I/data/provider-traces/own", linkToFile.put, "$I/data/provider-traces/own"},
		{"trace and a hard link of a secret", "$I/data/provider-traces/own", hardLink.put, "$I/data/provider-traces/own"},
		{"precreated and a link to nothing of another", "$I/companies", linkToNew.put, "$I/companies/f"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			launch.EachUser(t, func(t *testing.T, u launch.User) {
				w := newWorld(t, u)
				w.env = []string{trace + "$I/data/provider-traces/own", openCode + "$W/oc"}
				w.held(t, own()) // makes the entries
				bad := w.at(tt.path + "-bad")
				if err := tt.put(w, bad); err != nil {
					t.Fatal(err)
				}
				u.Own(t, bad)
				before := w.others(t)
				stop := swap(t, w.at(tt.path), bad)
				ran, refused := 0, 0
				for range 25 {
					r := w.command(t, w.text(), own(), []try{{Op: "read", Path: tt.read}, {Op: "read", Path: tt.read}, {Op: "list", Path: "$R/durable-sessions/other"}}).Run(t)
					if r.Code == 125 && r.Stdout == "" && r.Stderr != "" {
						refused++
						continue
					}
					ran++
					for _, g := range results(t, r, 3) {
						if strings.Contains(g.Data, secret) {
							t.Errorf("read %q", g.Data)
						}
					}
				}
				if n := stop(); n < 25 || ran+refused != 25 {
					t.Errorf("%d exchanges, %d launches ran, %d were refused", n, ran, refused)
				}
				t.Logf("%d ran, %d were refused", ran, refused)
				if len(before) != len(w.others(t)) {
					t.Errorf("what is of others changed: %v, %v", before, w.others(t))
				}
			})
		})
	}
}

// TestDescriptorsOfOtherSessionsAreClosed: a descriptor that leads into another session is closed, one
// into the own session stays.
func TestDescriptorsOfOtherSessionsAreClosed(t *testing.T) {
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		w := newWorld(t, u)
		w.held(t, own())
		u.Write(t, w.at("$R/durable-sessions/own-scope/f"), "own", 0o600)
		var extra []*os.File
		for _, path := range []string{
			"$R/durable-sessions/other/f", "$R/durable-sessions/own-scope/f", "$I/db", "$R/durable-sessions/own-scope", "$R/durable-sessions",
		} {
			f, err := os.Open(w.at(path))
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			extra = append(extra, f)
		}
		cmd := w.command(t, w.text(), own(), []try{{Op: "inherited", Path: "3"}, {Op: "inherited", Path: "4"}})
		cmd.Extra = extra
		got := results(t, cmd.Run(t), 2)
		// The witness's own runtime may have taken the number again.
		if strings.Contains(got[0].Data, secret) || got[1].Data != "own" {
			t.Errorf("%v", got)
		}
		closed := map[int]bool{}
		for _, d := range w.report(t).Descriptors {
			closed[d.FD] = d.Closed
		}
		if !closed[3] || closed[4] || !closed[5] || closed[6] || !closed[7] {
			t.Errorf("closed %v", closed)
		}
		cmd.Policy = nil
		if free := results(t, cmd.Run(t), 2); free[0].Data != secret || free[1].Data != "own" {
			t.Errorf("without a policy: %v", free)
		}
	})
}

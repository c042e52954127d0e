package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/shim/record"
)

// TestChangedMeanwhile puts another file under a name after install-shim looked
// at it and before it gives the name to a shim. That file is not lost.
func TestChangedMeanwhile(t *testing.T) {
	if _, err := exec.LookPath("strace"); err != nil {
		missing(t, "strace")
	}
	for _, tt := range []struct {
		name    string
		prepare []string // D is the directory
		op      []string
		keeps   bool // the install goes on, with the new file as the program
	}{
		{name: "a new file in a directory", op: []string{"install", "--dir", "D", "--real", "/bin/true", "tool"}},
		{
			name: "a file in the place of a shim", prepare: []string{"install", "--dir", "D", "--real", "/bin/true", "tool"},
			op: []string{"install", "--dir", "D", "--real", "/bin/true", "--argv0", "real", "tool"},
		},
		{
			name: "an upgrade over a shim in place", prepare: []string{"install", "--in-place", "D/tool"},
			op: []string{"install", "--in-place", "--argv0", "real", "D/tool"},
		},
		{name: "an upgrade of the program", op: []string{"install", "--in-place", "D/tool"}, keeps: true},
	} {
		for how, inject := range map[string][]string{"": nil, ", without exchange": {"-e", "inject=renameat2:error=EINVAL"}} {
			t.Run(tt.name+how, func(t *testing.T) {
				t.Parallel()
				dir := t.TempDir()
				at := func(args []string) []string {
					var out []string
					for _, a := range args {
						if a == "D" || strings.HasPrefix(a, "D/") {
							a = dir + a[1:]
						}
						out = append(out, a)
					}
					return out
				}
				tool := filepath.Join(dir, "tool")
				if tt.keeps || len(tt.prepare) > 1 && tt.prepare[1] == "--in-place" {
					if err := copyFile("/bin/echo", tool, 0o755); err != nil {
						t.Fatal(err)
					}
				}
				if tt.prepare != nil {
					installShim(t, at(tt.prepare)...)
				}
				trace := append([]string{"-f", "-qq", "-o", "/dev/null", "-e", "trace=fsync,renameat2", "-e", "inject=fsync:delay_enter=2000000:when=1"}, inject...)
				cmd := exec.Command("strace", append(append(trace, filepath.Join(binDir, "install-shim")), at(tt.op)...)...)
				cmd.Env = []string{"PATH=/nowhere"}
				var said bytes.Buffer
				cmd.Stderr = &said
				if err := cmd.Start(); err != nil {
					t.Fatal(err)
				}
				for {
					if _, err := os.Lstat(filepath.Join(dir, ".tool.shim-new")); err == nil {
						break
					}
					time.Sleep(time.Millisecond)
				}
				if err := copyFile("/bin/cat", filepath.Join(dir, "new"), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.Rename(filepath.Join(dir, "new"), tool); err != nil {
					t.Fatal(err)
				}
				err := cmd.Wait()
				kept := tool
				if tt.keeps && how == "" {
					kept = tool + record.InPlaceSuffix
				} else if err == nil || !strings.Contains(said.String(), "by somebody else meanwhile") {
					t.Errorf("install-shim: %v, %s", err, &said)
				}
				got, err := os.ReadFile(kept)
				want, err2 := os.ReadFile("/bin/cat")
				if err != nil || err2 != nil || !bytes.Equal(got, want) {
					t.Errorf("what was put there meanwhile is lost: %v, %v", err, err2)
				}
				if _, err := os.Lstat(filepath.Join(dir, ".tool.shim-new")); err == nil {
					t.Error("the temporary file is left")
				}
			})
		}
	}
}

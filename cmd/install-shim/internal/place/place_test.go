package place

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/cmd/install-shim/internal/voice"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/tests/integration/launch"
)

// asTool makes this test binary one call of install or uninstall, for strace.
const asTool = "PLACE_TEST_TOOL"

func TestMain(m *testing.M) {
	if os.Getenv(asTool) != "" {
		v := &voice.Caller{Out: os.Stdout, Err: os.Stderr, Environ: []string{"PATH=/nowhere"}}
		runtime.LockOSThread()
		os.Exit(v.Finish(commands[os.Args[1]](v, os.Args[2:])))
	}
	launch.Main(m)
}

var commands = map[string]func(*voice.Caller, []string) error{"install": Install, "uninstall": Uninstall, "status": Status}

// call runs a command with a PATH and returns what it said.
func call(path string, args ...string) (out, said string, code int) {
	var o, e bytes.Buffer
	v := &voice.Caller{Out: &o, Err: &e, Environ: []string{"PATH=" + path}}
	code = v.Finish(commands[args[0]](v, args[1:]))
	return o.String(), e.String(), code
}

// must runs a command that has to succeed.
func must(t *testing.T, args ...string) {
	t.Helper()
	if _, said, code := call("/nowhere", args...); code != 0 {
		t.Fatalf("%q: %d, %s", args, code, said)
	}
}

func write(t *testing.T, path, text string, perm os.FileMode) string {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), perm); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, perm); err != nil {
		t.Fatal(err)
	}
	return path
}

func open(t *testing.T, path string) *directory {
	t.Helper()
	d, err := openDirectory(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.close)
	return d
}

// TestOrder: a new file is complete and on the disk before it gets the name, the
// name changes in one call, and the directory is on the disk after each change.
func TestOrder(t *testing.T) {
	if _, err := exec.LookPath("strace"); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	shim := launch.Shim(t)
	put := func(name string) string {
		return "openat ." + name + ".shim-new O_WRONLY|O_CREAT|O_EXCL|O_NOFOLLOW|O_CLOEXEC 0600; fchmod T 0755; fsync T; "
	}
	for _, row := range []struct {
		name       string
		noExchange bool
		before, op []string
		want       string
	}{
		{
			name: "in place", op: []string{"install", "--in-place", "D/tool"},
			want: put("tool") + "renameat2 .tool.shim-new tool.shim-real NOREPLACE; fsync D; renameat2 tool.shim-real tool EXCHANGE; fsync D",
		},
		{
			name: "in place by link", noExchange: true, op: []string{"install", "--in-place", "D/tool"},
			want: put("tool") + "renameat .tool.shim-new tool.shim-real; fsync D; renameat tool.shim-real .tool.shim-new; fsync D; " +
				"linkat tool tool.shim-real; fsync D; renameat .tool.shim-new tool; fsync D",
		},
		{
			name: "update", before: []string{"install", "--in-place", "D/tool"}, op: []string{"install", "--in-place", "--report", "/tmp/x", "D/tool"},
			want: put("tool") + "renameat2 .tool.shim-new tool EXCHANGE; fsync D; unlinkat .tool.shim-new; fsync D",
		},
		{
			name: "two in a directory", op: []string{"install", "--dir", "D", "--real", "/bin/true", "a", "b"},
			want: put("a") + put("b") + "renameat2 .a.shim-new a NOREPLACE; fsync D; renameat2 .b.shim-new b NOREPLACE; fsync D",
		},
		{
			name: "uninstall in place", before: []string{"install", "--in-place", "D/tool"}, op: []string{"uninstall", "--in-place", "D/tool"},
			want: "renameat tool.shim-real tool; fsync D",
		},
		{
			name: "uninstall", before: []string{"install", "--dir", "D", "--real", "/bin/true", "a"}, op: []string{"uninstall", "--dir", "D", "a"},
			want: "unlinkat a; fsync D",
		},
	} {
		t.Run(row.name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, dir+"/tool", "#!/bin/sh\n", 0o755)
			fill := func(args []string) []string {
				args = slices.Clone(args)
				for i := range args {
					if args[i] == "D" || strings.HasPrefix(args[i], "D/") {
						args[i] = dir + args[i][1:]
					}
				}
				if args[0] == "install" {
					args = slices.Insert(args, 1, "--shim", shim)
				}
				return args
			}
			if row.before != nil {
				must(t, fill(row.before)...)
			}
			log := filepath.Join(t.TempDir(), "log")
			args := []string{"-ff", "-qq", "-y", "-o", log, "-e", "trace=openat,fchmod,fsync,renameat,renameat2,linkat,unlinkat"}
			if row.noExchange {
				args = append(args, "-e", "inject=renameat2:error=EINVAL")
			}
			cmd := exec.Command("strace", append(append(args, "/proc/self/exe"), fill(row.op)...)...)
			self, err := os.Executable()
			if err != nil {
				t.Fatal(err)
			}
			cmd.Args[len(args)+1] = self
			cmd.Env = append(os.Environ(), asTool+"=1")
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			if got := calls(t, log, dir); got != row.want {
				t.Errorf("\n got %s\nwant %s", got, row.want)
			}
		})
	}
}

// calls returns the successful calls of a trace that change something, in short.
func calls(t *testing.T, log, dir string) string {
	t.Helper()
	// One file for each thread, of which one makes all changes.
	files, err := filepath.Glob(log + ".*")
	if err != nil {
		t.Fatal(err)
	}
	var text []byte
	for _, file := range files {
		more, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		text = append(text, more...)
	}
	line := regexp.MustCompile(`^(\w+)\((.*)\) += \d`)
	var got []string
	for _, l := range strings.Split(string(text), "\n") {
		m := line.FindStringSubmatch(l)
		if m == nil || m[1] == "openat" && !strings.Contains(m[2], "O_CREAT") {
			continue
		}
		short := []string{m[1]}
		for _, arg := range strings.Split(m[2], ", ") {
			_, leads, _ := strings.Cut(arg, "<")
			switch leads = strings.TrimSuffix(leads, ">"); {
			case m[1] == "fsync" && leads == dir:
				arg = "D"
			case strings.HasSuffix(leads, ".shim-new"):
				arg = "T"
			case arg == "0" || leads != "":
				continue
			}
			short = append(short, strings.TrimPrefix(strings.Trim(arg, `"`), "RENAME_"))
		}
		got = append(got, strings.Join(short, " "))
	}
	return strings.Join(got, "; ")
}

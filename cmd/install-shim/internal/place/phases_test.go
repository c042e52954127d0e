package place

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/cmd/install-shim/internal/shims"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/tests/integration/launch"
)

// TestPhases: what status says of each state, and what install and uninstall do.
func TestPhases(t *testing.T) {
	shim := launch.Shim(t)
	dir := t.TempDir()
	at := func(name string) string { return dir + "/" + name }
	program := func(name string) { write(t, at(name), "#!/bin/sh\n# "+name+"\n", 0o755) }
	inPlace := func(name, real string) {
		launch.Install(t, dir, name, launch.Record{Real: real, InPlace: true})
	}
	program("fresh")
	write(t, at("plain"), "text", 0o644)
	program("installed" + shims.Suffix)
	inPlace("installed", at("installed")+shims.Suffix)
	program("unfinished")
	inPlace("unfinished"+shims.Suffix, at("unfinished")+shims.Suffix)
	program("linked")
	if err := os.Link(at("linked"), at("linked")+shims.Suffix); err != nil {
		t.Fatal(err)
	}
	program("replaced")
	program("replaced" + shims.Suffix)
	write(t, at("overwritten"), "text", 0o644)
	program("overwritten" + shims.Suffix)
	program("vanished" + shims.Suffix)
	inPlace("orphaned", at("orphaned")+shims.Suffix)
	program("moved" + shims.Suffix)
	inPlace("moved", "/bin/true")
	launch.Install(t, dir, "indir", launch.Record{Real: at("fresh")})
	launch.Install(t, dir, "stale", launch.Record{Real: at("nothing")})
	launch.Copy(t, dir, "bare")
	launch.Copy(t, dir, "besides")
	program("besides" + shims.Suffix)
	launch.Install(t, dir, "broken", launch.Record{Real: at("fresh")})
	data, err := os.ReadFile(at("broken"))
	if err != nil {
		t.Fatal(err)
	}
	i := bytes.Index(data, []byte(at("fresh")))
	data[i+1] ^= 1
	write(t, at("broken"), string(data), 0o755)

	for _, row := range []struct{ name, state, install, uninstall, remove string }{
		{"fresh", "not-a-shim", "installed", "not installed", "is not a shim"},
		{"plain", "not-a-shim", "is not executable", "not installed", "is not a shim"},
		{"installed", "ok", "updated", "restored", "installed in place"},
		{"unfinished", "unfinished", "installed", "restored", "is not a shim"},
		{"linked", "unfinished", "installed", "restored", "is not a shim"},
		{"replaced", "replaced", "was replaced", "kept", "is not a shim"},
		{"overwritten", "replaced", "was replaced", "is no program that can be executed", "is not a shim"},
		{"vanished", "missing", "is gone", "restored", "not installed"},
		{"orphaned", "broken", "without its program", "there is no", "installed in place"},
		{"moved", "broken", "updated", "restored", "installed in place"},
		{"indir", "ok", "with --dir", "with --dir", "removed"},
		{"stale", "broken", "with --dir", "with --dir", "removed"},
		{"bare", "no-record", "without its program", "there is no", "never installed"},
		{"besides", "no-record", "updated", "never installed", "never installed"},
		{"broken", "broken", "without its program", "there is no", "removed"},
	} {
		out, _, code := call("/nowhere", "status", at(row.name))
		if fields := strings.Fields(strings.Split(out, "\n")[1]); fields[len(fields)-1] != row.state || (code == 0) != (row.state == "ok") {
			t.Errorf("%s: %d, %s", row.name, code, out)
		}
		for _, op := range []struct {
			what, want string
			args       []string
		}{
			{"install", row.install, []string{"install", "--shim", shim, "--in-place", row.name}},
			{"uninstall", row.uninstall, []string{"uninstall", "--in-place", row.name}},
			{"remove", row.remove, []string{"uninstall", "--dir", ".", row.name}},
		} {
			work := t.TempDir()
			for _, name := range []string{row.name, row.name + shims.Suffix, "fresh"} {
				if err := os.Link(at(name), work+"/"+name); err != nil && !os.IsNotExist(err) && !os.IsExist(err) {
					t.Fatal(err)
				}
			}
			t.Chdir(work)
			if out, said, code := call("/nowhere", op.args...); !strings.Contains(out+said, op.want) || (code == 0) != (out != "") {
				t.Errorf("%s %s: %d, %s%s, want %q", op.what, row.name, code, out, said, op.want)
			}
		}
	}
}

// TestDependents: a program to which another shim leads stays in its place.
func TestDependents(t *testing.T) {
	shim, dir, other := launch.Shim(t), t.TempDir(), t.TempDir()
	program := write(t, dir+"/program", "#!/bin/sh\n", 0o755)
	for from, to := range map[string]string{"one": "program", "two": "one"} {
		if err := os.Symlink(to, dir+"/"+from); err != nil {
			t.Fatal(err)
		}
	}
	in := func(names ...string) []string {
		args := []string{"install", "--shim", shim, "--in-place"}
		for _, n := range names {
			args = append(args, dir+"/"+n)
		}
		return args
	}
	for _, names := range [][]string{{"two", "program"}, {"program", "two"}, {"one", "two"}} {
		if _, said, code := call("/nowhere", in(names...)...); code == 0 || !strings.Contains(said, "replace only one of the two") {
			t.Errorf("%q: %d, %s", names, code, said)
		}
	}
	launch.Install(t, other, "front", launch.Record{Real: dir + "/two"})
	for _, name := range []string{"program", "one", "two"} {
		if _, said, code := call(other, in(name)...); code == 0 || !strings.Contains(said, "front stands in front of it already") {
			t.Errorf("%s: %d, %s", name, code, said)
		}
	}
	if out, said, code := call("/nowhere", in("program")...); code != 0 {
		t.Errorf("%s: %d, %s%s", program, code, out, said)
	}
}

// TestInDirectory: a file that is no shim is never overwritten, no shim stands
// in front of a shim, and nothing is made for a name that is refused.
func TestInDirectory(t *testing.T) {
	shim, dir, path := launch.Shim(t), t.TempDir(), t.TempDir()
	program := write(t, path+"/tool", "#!/bin/sh\n", 0o755)
	write(t, dir+"/mine", "mine", 0o755)
	launch.Install(t, path, "placed", launch.Record{Real: program, InPlace: true})
	launch.Install(t, path, "shadow", launch.Record{Real: program})
	install := func(args ...string) (string, string, int) {
		return call(dir+":"+path, append([]string{"install", "--shim", shim, "--dir"}, args...)...)
	}
	for _, row := range []struct{ args, want string }{
		{dir + " tool", "installed " + dir + "/tool -> " + program + "\n"},
		{dir + " tool", "unchanged " + dir + "/tool"},
		{dir, "no NAME given"},
		{dir + " --real " + program + " mine", "exists and is not a shim; it stays as it is"},
		{dir + " --real " + path + "/shadow x", "is itself a shim"},
		{dir + " --real tool x", "must be an absolute path"},
		{dir + " placed", "already is a shim in place"},
		{dir + " shadow", "is not on PATH"},
		{path + "/a/b tool", "no directory to create it in"},
		{path + "/new nothing", "is not on PATH"},
		{path + "/new a/b", "is a path, not a name"},
		{dir + " --real " + program + " gcc", "a compiler looks for its parts"},
		{path + "/made tool tool", "installed " + path + "/made/tool -> " + program + "\n"},
	} {
		if out, said, _ := install(strings.Fields(row.args)...); !strings.Contains(out+said, row.want) || strings.Count(out, "\n") > 1 {
			t.Errorf("%s: %s%s, want %q", row.args, out, said, row.want)
		}
	}
	if text, err := os.ReadFile(dir + "/mine"); err != nil || string(text) != "mine" {
		t.Errorf("%q, %v", text, err)
	}
	if _, err := os.Stat(path + "/new"); err == nil {
		t.Error("a directory was made for a name that was refused")
	}
	if out, said, code := call(dir, "install", "--shim", dir+"/tool", "--dir", dir, "--real", program, "tool"); code == 0 || !strings.Contains(said, "is the very shim") {
		t.Errorf("%d, %s%s", code, out, said)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 3 {
		t.Errorf("%v, %v", entries, err)
	}
}

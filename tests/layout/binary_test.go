package layout

import (
	"bytes"
	"debug/buildinfo"
	"debug/elf"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The largest sizes of a shim in bytes, with the command check and without it.
// The shim is read from disk by every launch that finds a cold cache, and
// copied into images.
const (
	maxShimSize          = 3_400_000
	maxShimSizeUnchecked = 3_100_000
)

// TestBinaries looks at the files that make build gives, for both machines.
func TestBinaries(t *testing.T) {
	machines := map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}
	version := strings.TrimSpace(string(read(t, filepath.Join(root, "VERSION"))))
	for arch, machine := range machines {
		bin := t.TempDir()
		build(t, "GOARCH="+arch, "BIN="+bin)
		for _, name := range []string{"sandbox-exec-shim", "install-shim"} {
			t.Run(arch+"/"+name, func(t *testing.T) {
				file := filepath.Join(bin, name)
				testStatic(t, file, machine)
				data := read(t, file)
				if !bytes.Contains(data, []byte(version)) {
					t.Errorf("the version %s is not in the binary", version)
				}
				testNoMachinePaths(t, data)
				testBuildInfo(t, file)
				if name == "sandbox-exec-shim" {
					testSize(t, data, maxShimSize)
				}
			})
		}
		t.Run(arch+"/without the command check", func(t *testing.T) {
			bin := t.TempDir()
			build(t, "GOARCH="+arch, "BIN="+bin, "TAGS=nocommandcheck")
			data := read(t, filepath.Join(bin, "sandbox-exec-shim"))
			testSize(t, data, maxShimSizeUnchecked)
			if parser := []byte("mvdan.cc/sh/v3/syntax.(*Parser)"); bytes.Contains(data, parser) {
				t.Errorf("the shell parser is in the binary: %q", parser)
			}
		})
	}
}

// TestShimWithoutTheCommandCheckSaysSo: a policy that asks for the check stops, or
// the program runs with a warning where nothing is required.
func TestShimWithoutTheCommandCheckSaysSo(t *testing.T) {
	bin := t.TempDir()
	build(t, "BIN="+bin, "TAGS=nocommandcheck")
	for _, row := range []struct {
		policy, stdout, says string
		code                 int
	}{
		{`{"version":1,"network":"deny"}`, "ran\n", "", 0},
		{`{"version":1,"network":"deny","commandCheck":"deny"}`, "", "without the command check", 125},
		{`{"version":1,"required":false,"network":"deny","commandCheck":"deny"}`, "ran\n", "warning", 0},
	} {
		cmd := exec.Command(filepath.Join(bin, "sandbox-exec-shim"), "-c", "echo ran")
		cmd.Args[0] = "sh"
		policy := strings.Replace(row.policy, "{", `{"program":"/bin/sh",`, 1)
		cmd.Env = []string{"PATH=/usr/bin:/bin", "SANDBOX_EXEC_SHIM_POLICY=" + policy}
		var stdout, stderr strings.Builder
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
		err := cmd.Run()
		if cmd.ProcessState == nil {
			t.Fatal(err)
		}
		if code := cmd.ProcessState.ExitCode(); code != row.code || stdout.String() != row.stdout || !strings.Contains(stderr.String(), row.says) || (row.says == "") != (stderr.Len() == 0) {
			t.Errorf("%s: exit %d, %q, %q; want %d, %q and %q", row.policy, code, stdout.String(), stderr.String(), row.code, row.stdout, row.says)
		}
	}
}

func testSize(t *testing.T, shim []byte, most int) {
	t.Helper()
	if len(shim) > most {
		t.Errorf("%d bytes, want at most %d", len(shim), most)
	}
}

// testStatic: no loader, no shared library, no symbol table.
func testStatic(t *testing.T, file string, machine elf.Machine) {
	t.Helper()
	f, err := elf.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if f.Machine != machine {
		t.Errorf("machine is %v, want %v", f.Machine, machine)
	}
	if f.Type != elf.ET_EXEC {
		t.Errorf("type is %v, want %v", f.Type, elf.ET_EXEC)
	}
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP || p.Type == elf.PT_DYNAMIC {
			t.Errorf("it has a %v segment: it is not static", p.Type)
		}
	}
	for _, name := range []string{".symtab", ".debug_info", ".zdebug_info"} {
		if f.Section(name) != nil {
			t.Errorf("it has a section %s: it is not stripped", name)
		}
	}
}

// testNoMachinePaths: a binary says nothing of the machine that built it.
func testNoMachinePaths(t *testing.T, data []byte) {
	t.Helper()
	top, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	paths := map[string]string{"the module": top + "/"}
	for _, name := range []string{"GOROOT", "GOMODCACHE", "GOCACHE"} {
		out, err := goCommand("env", name).Output()
		if err != nil {
			t.Fatalf("go env %s: %v", name, err)
		}
		paths[name] = strings.TrimSpace(string(out)) + "/"
	}
	for what, path := range paths {
		if bytes.Contains(data, []byte(path)) {
			t.Errorf("the path of %s is in the binary", what)
		}
	}
}

// testBuildInfo: what the binary tells of its own build is the same for
// everybody.
func testBuildInfo(t *testing.T, file string) {
	t.Helper()
	info, err := buildinfo.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	got := make(map[string]string)
	for _, s := range info.Settings {
		got[s.Key] = s.Value
		if strings.HasPrefix(s.Key, "vcs") || s.Key == "-ldflags" {
			t.Errorf("build setting %s=%s differs from one tree to the next", s.Key, s.Value)
		}
	}
	for key, want := range map[string]string{"CGO_ENABLED": "0", "-trimpath": "true"} {
		if got[key] != want {
			t.Errorf("build setting %s is %q, want %q", key, got[key], want)
		}
	}
}

// build runs make build with variables of make.
func build(t *testing.T, vars ...string) {
	t.Helper()
	cmd := exec.Command("make", append([]string{"--no-print-directory", "build"}, vars...)...)
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("make build %s: %v\n%s", strings.Join(vars, " "), err, out)
	}
}

func read(t *testing.T, file string) []byte {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

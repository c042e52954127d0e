package layout

import (
	"os/exec"
	"path"
	"slices"
	"strings"
	"testing"
)

// bans are the packages that may not be in the shim's binary. Each costs
// start-up time in every launch, or does what a shim must never do.
var bans = []struct{ tree, why string }{
	{"net", "the shim opens no connection"},
	{"os/exec", "the shim becomes the program; it starts none"},
	{"os/user", "a launch reads no account database"},
	{"flag", "the arguments belong to the program"},
	{"text/template", "large, and it keeps the linker from removing methods"},
	{"html/template", "large, and it keeps the linker from removing methods"},
	{"testing", "test code"},
	{"runtime/cgo", "the binary is static"},
	{"github.com/spf13", "the shim has no command line"},
	{"github.com/urfave/cli", "the shim has no command line"},
	{"github.com/alecthomas", "the shim has no command line"},
	{"github.com/landlock-lsm/go-landlock/landlock$", "it follows symlinks, restricts every thread, and its best effort fails open"},
}

// modules are the modules and packages of others in the shim's binary, with the
// reason.
var modules = map[string]string{
	"golang.org/x/sys":                              "system calls",
	"github.com/landlock-lsm/go-landlock":           "Landlock's system calls and constants",
	"kernel.org/pub/linux/libs/security/libcap/psx": "comes with go-landlock, not called",
	"github.com/hashicorp/go-hclog":                 "diagnostics as JSON",
	"github.com/fatih/color":                        "comes with go-hclog, not used for JSON",
	"github.com/mattn/go-colorable":                 "comes with go-hclog, not used for JSON",
	"github.com/mattn/go-isatty":                    "comes with go-hclog, not used for JSON",
	"mvdan.cc/sh/v3/syntax":                         "the shell parser of the command check",
	"mvdan.cc/sh/v3/fileutil":                       "comes with the shell parser",
}

func TestShimLinks(t *testing.T) {
	for _, arch := range []string{"amd64", "arm64"} {
		t.Run(arch, func(t *testing.T) {
			pkgs := list(t, arch, "-deps", "./cmd/sandbox-exec-shim")
			byPath := make(map[string]goPackage)
			for _, p := range pkgs {
				byPath[p.ImportPath] = p
			}
			if _, ok := byPath[path.Join(module, "shim/boot")]; !ok {
				t.Fatal("shim/boot is not linked: the list is not that of the shim")
			}
			for _, p := range pkgs {
				if why, banned := banned(p.ImportPath); banned {
					t.Errorf("the shim links %s: %s\n\tby %s", p.ImportPath, why, chain(byPath, p.ImportPath))
				}
				if !p.Standard && !within(p.ImportPath, module) && !known(p.ImportPath) {
					t.Errorf("the shim links %s, which is in no module that the list allows\n\tby %s",
						p.ImportPath, chain(byPath, p.ImportPath))
				}
			}
		})
	}
}

func banned(pkg string) (why string, ok bool) {
	for _, b := range bans {
		exact, isExact := strings.CutSuffix(b.tree, "$")
		if isExact && pkg == exact || !isExact && within(pkg, b.tree) {
			return b.why, true
		}
	}
	return "", false
}

func known(pkg string) bool {
	for m := range modules {
		if within(pkg, m) {
			return true
		}
	}
	return false
}

// chain names the packages through which the command comes to link pkg.
func chain(pkgs map[string]goPackage, pkg string) string {
	path := []string{pkg}
	for at := pkg; ; {
		var users []string
		for _, p := range pkgs {
			if slices.Contains(p.Imports, at) && !slices.Contains(path, p.ImportPath) {
				users = append(users, p.ImportPath)
			}
		}
		if len(users) == 0 {
			slices.Reverse(path)
			return strings.Join(path, " > ")
		}
		slices.Sort(users)
		// A package of ours is the one that can be changed.
		if i := slices.IndexFunc(users, func(u string) bool { return within(u, module) }); i >= 0 {
			users[0] = users[i]
		}
		at = users[0]
		path = append(path, at)
	}
}

// TestUnsupportedArchitecture: no binary rather than one without the entry.
func TestUnsupportedArchitecture(t *testing.T) {
	const want = "supports_linux_on_amd64_and_arm64_only"
	for _, arch := range []string{"riscv64", "386"} {
		t.Run(arch, func(t *testing.T) {
			cmd := exec.Command("make", "build", "GOARCH="+arch, "BIN="+t.TempDir())
			cmd.Dir = root
			out, err := cmd.CombinedOutput()
			if err == nil {
				t.Fatal("the build succeeded")
			}
			if !strings.Contains(string(out), want) {
				t.Errorf("the build does not say %q:\n%s", want, out)
			}
		})
	}
}

func TestBanned(t *testing.T) {
	for pkg, want := range map[string]bool{
		"net": true, "net/http": true, "netip": false, "os": false, "os/exec": true,
		"github.com/landlock-lsm/go-landlock/landlock":         true,
		"github.com/landlock-lsm/go-landlock/landlock/syscall": false,
		"golang.org/x/net/bpf":                                 false,
	} {
		if _, got := banned(pkg); got != want {
			t.Errorf("%s is banned: %v, want %v", pkg, got, want)
		}
	}
}

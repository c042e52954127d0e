package layout

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/sandbox-exec-shim/sandbox-exec-shim"

// root is the top of the module; tests run in their package's directory.
const root = "../.."

// An arrow is a package, or a tree of packages, and what of this module it may
// import. A tree also holds the packages below it, unless they have a line of
// their own.
type arrow struct {
	pkg  string
	may  []string
	why  string
	then bool // must exist
}

var arrows = []arrow{
	{
		pkg: "pathcheck", may: []string{}, then: true,
		why: "what a path names is decided without knowing of policies, so it can be tested and reused alone",
	},
	{
		pkg: "pathcheck/command", may: []string{"pathcheck"},
		why: "reading a command string needs paths and nothing of a launch",
	},
	{
		pkg: "rules", may: []string{"pathcheck"}, then: true,
		why: "what was asked is decided from its text alone, on any system",
	},
	{
		pkg: "rules/load", may: []string{"rules"}, then: true,
		why: "a policy is read from where it stands without knowing what it will mean",
	},
	{
		pkg: "rules/plan", may: []string{"rules", "pathcheck"}, then: true,
		why: "the decision is made without a kernel, so that explain and the tests make the same one, on any system",
	},
	{
		pkg: "rules/evalhide", may: []string{"rules", "pathcheck"}, then: true,
		why: "a policy for evaluations is made before a launch, and the launch knows nothing of it",
	},
	{
		pkg: "shim/boot", may: []string{}, then: true,
		why: "it runs before the Go runtime, where nothing else can",
	},
	{
		pkg: "shim/record", may: []string{"shim/boot"},
		why: "the installer and the shim agree on the record without either one's other parts",
	},
	{
		pkg: "shim/seccomp", may: []string{},
		why: "a filter is built from what it must refuse, not from a policy",
	},
	{
		pkg: "shim/report", may: []string{"rules"}, then: true,
		why: "a harness reads reports with it, and should not have to link a launch",
	},
	{
		pkg: "shim/internal/output", may: []string{"rules"}, then: true,
		why: "what is said depends on nothing that is decided",
	},
	{
		pkg: "shim/internal/target", may: []string{"rules/plan", "pathcheck", "shim/record"}, then: true,
		why: "which program it is does not depend on what confines it",
	},
	{
		pkg: "shim/internal/planner", may: []string{"rules", "rules/load", "rules/plan", "pathcheck", "shim/record", "shim/internal/target"}, then: true,
		why: "a plan is made without entering anything, so that an explanation makes the same one",
	},
	{
		pkg: "shim/internal/confine", may: []string{"rules", "rules/plan", "pathcheck", "shim/seccomp", "shim/internal/planner"}, then: true,
		why: "what is entered and proved is the plan's and the kernel's; the report is made from it and never asked",
	},
	{
		pkg: "shim", then: true,
		may: []string{
			"rules", "rules/load", "rules/plan", "pathcheck", "pathcheck/command", "shim/boot", "shim/record", "shim/seccomp", "shim/report",
			"shim/internal/output", "shim/internal/target", "shim/internal/planner", "shim/internal/confine",
		},
		why: "a launch uses the policy; it knows no installer",
	},
	{
		pkg: "cmd/sandbox-exec-shim", may: []string{"shim", "shim/boot", "shim/record"}, then: true,
		why: "the binary only hands the start to the launch",
	},
	{
		pkg: "cmd/install-shim", may: []string{
			"cmd/install-shim/internal/place", "cmd/install-shim/internal/policies", "cmd/install-shim/internal/probe",
			"cmd/install-shim/internal/voice",
		},
		why:  "main is the table of commands, and each command lives in a room",
		then: true,
	},
	{
		pkg: "cmd/install-shim/internal/voice", may: []string{}, then: true,
		why: "how commands read their line and speak has nothing to do with what they do",
	},
	{
		pkg: "cmd/install-shim/internal/shims", may: []string{"cmd/install-shim/internal/voice", "pathcheck", "shim/record"}, then: true,
		why: "a shim is found by its file, without a policy",
	},
	{
		pkg: "cmd/install-shim/internal/place",
		may: []string{
			"cmd/install-shim/internal/shims", "cmd/install-shim/internal/voice", "pathcheck", "shim/boot", "shim/record",
		},
		why:  "what moves files reads no policy and starts nothing",
		then: true,
	},
	{
		pkg: "cmd/install-shim/internal/policies",
		may: []string{
			"cmd/install-shim/internal/shims", "cmd/install-shim/internal/voice",
			"rules", "rules/evalhide", "rules/load", "pathcheck", "pathcheck/command", "shim", "shim/record", "shim/report",
		},
		why:  "the tool uses the launch's own plan and report, and the launch never uses the tool",
		then: true,
	},
	{
		pkg: "cmd/install-shim/internal/probe",
		may: []string{
			"cmd/install-shim/internal/policies", "cmd/install-shim/internal/shims", "cmd/install-shim/internal/voice",
			"rules", "pathcheck", "shim", "shim/record", "shim/report",
		},
		why:  "a probe launches what was installed, and changes none of it",
		then: true,
	},
}

// onlyUsers are packages of others that one package of ours keeps to itself.
var onlyUsers = []struct{ pkg, user, why string }{
	{"mvdan.cc/sh/v3", "pathcheck/command", "the shell parser is large, and only advice depends on it"},
	{"github.com/landlock-lsm/go-landlock/landlock/syscall", "shim/internal/confine", "rules decides, this package enforces"},
	{"github.com/hashicorp/go-hclog", "shim/internal/output", "diagnostics are a launch's"},
}

func TestImportDirection(t *testing.T) {
	pkgs := list(t, "amd64", "./...")
	for _, a := range arrows {
		if a.then && !slices.ContainsFunc(pkgs, func(p goPackage) bool { return p.ImportPath == path.Join(module, a.pkg) }) {
			t.Errorf("package %s does not exist: the arrow holds nothing", a.pkg)
		}
	}
	for _, p := range pkgs {
		a, ok := arrowOf(p.ImportPath)
		if !ok {
			continue
		}
		for _, imp := range p.Imports {
			short, ours := strings.CutPrefix(imp, module+"/")
			if ours && !mayImport(a, short) {
				t.Errorf("%s imports %s\n\tit may import only %q: %s", p.ImportPath, imp, a.may, a.why)
			}
		}
	}
}

func TestOnlyUsers(t *testing.T) {
	for _, p := range list(t, "amd64", "./...") {
		for _, imp := range p.Imports {
			for _, only := range onlyUsers {
				if within(imp, only.pkg) && !within(p.ImportPath, module+"/tests") && p.ImportPath != path.Join(module, only.user) {
					t.Errorf("%s imports %s, which only %s may: %s", p.ImportPath, imp, only.user, only.why)
				}
			}
		}
	}
}

// TestNoFiles: what these packages decide, they decide without a file and
// without a system call of their own.
func TestNoFiles(t *testing.T) {
	kernel := []string{"io/ioutil", "net", "os", "path/filepath", "syscall", "golang.org/x/sys"}
	seen := 0
	for _, p := range list(t, "amd64", "./rules", "./rules/plan") {
		seen++
		for _, imp := range p.Imports {
			if slices.ContainsFunc(kernel, func(tree string) bool { return within(imp, tree) }) {
				t.Errorf("%s imports %s", p.ImportPath, imp)
			}
		}
	}
	if seen != 2 {
		t.Errorf("%d packages were listed, want 2", seen)
	}
}

// TestPortable: pathcheck and rules build on any system that Go knows.
func TestPortable(t *testing.T) {
	for _, system := range []string{"darwin/arm64", "windows/amd64"} {
		t.Run(strings.ReplaceAll(system, "/", "-"), func(t *testing.T) {
			goos, goarch, _ := strings.Cut(system, "/")
			cmd := goCommand("build", "./pathcheck/...", "./rules/...")
			cmd.Env = append(cmd.Env, "GOOS="+goos, "GOARCH="+goarch)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("go build: %v\n%s", err, out)
			}
		})
	}
}

// TestModuleFileIsTidy: go.mod names what is used and nothing else.
func TestModuleFileIsTidy(t *testing.T) {
	cmd := goCommand("mod", "tidy", "-diff")
	out, err := cmd.CombinedOutput()
	if bytes.Contains(out, []byte("dial tcp")) && os.Getenv("CI") == "" {
		t.Skip("go mod tidy must read the modules' own tests, and they cannot be fetched here")
	}
	if err != nil {
		t.Errorf("go mod tidy -diff: %v\n%s", err, out)
	}
}

func arrowOf(pkg string) (arrow, bool) {
	best, found := arrow{}, false
	for _, a := range arrows {
		if within(pkg, path.Join(module, a.pkg)) && len(a.pkg) > len(best.pkg) {
			best, found = a, true
		}
	}
	return best, found
}

// mayImport: what the arrow says, and the packages of its own tree.
func mayImport(a arrow, short string) bool {
	own, ok := arrowOf(path.Join(module, short))
	return slices.Contains(a.may, short) || ok && own.pkg == a.pkg
}

func within(pkg, tree string) bool { return pkg == tree || strings.HasPrefix(pkg, tree+"/") }

type goPackage struct {
	ImportPath string
	Standard   bool
	Imports    []string
	Error      *struct{ Err string }
}

// list runs go list for linux on arch, as the shim is built.
func list(t *testing.T, arch string, args ...string) []goPackage {
	t.Helper()
	cmd := goCommand(append([]string{"list", "-e", "-json=ImportPath,Standard,Imports,Error"}, args...)...)
	cmd.Env = append(cmd.Env, "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+arch)
	out, err := cmd.Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			t.Fatalf("go list: %v\n%s", err, exit.Stderr)
		}
		t.Fatal(err)
	}
	var pkgs []goPackage
	dec := json.NewDecoder(bytes.NewReader(out))
	for {
		var p goPackage
		err := dec.Decode(&p)
		if errors.Is(err, io.EOF) {
			return pkgs
		}
		if err != nil {
			t.Fatalf("go list: %v", err)
		}
		if p.Error != nil {
			t.Errorf("%s: %s", p.ImportPath, p.Error.Err)
		}
		pkgs = append(pkgs, p)
	}
}

// goCommand is the go command at the top of the module, without the settings
// of whoever runs the tests.
func goCommand(args ...string) *exec.Cmd {
	cmd := exec.Command("go", args...)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "GOFLAGS=", "GOWORK=off")
	return cmd
}

// TestMayImport: the rules above say no where they must.
func TestMayImport(t *testing.T) {
	for _, row := range []struct {
		pkg, imp string
		want     bool
	}{
		{"rules", "pathcheck", true},
		{"rules", "shim", false},
		{"rules", "rules/plan", false},
		{"rules/plan", "rules", true},
		{"rules/plan", "rules/load", false},
		{"rules/load", "rules/plan", false},
		{"shim", "rules/evalhide", false},
		{"pathcheck", "rules", false},
		{"pathcheck", "pathcheck/command", false},
		{"pathcheck/command", "pathcheck", true},
		{"pathcheck/anything", "pathcheck", true},
		{"shim", "cmd/install-shim", false},
		{"shim/boot", "shim", false},
		{"shim/anything", "shim", true},
		{"cmd/sandbox-exec-shim", "rules", false},
		{"cmd/install-shim/anything", "cmd/install-shim", true},
		{"cmd/install-shim", "rules", false},
		{"cmd/install-shim/internal/place", "rules", false},
		{"cmd/install-shim/internal/shims", "cmd/install-shim/internal/place", false},
		{"cmd/install-shim/internal/probe", "cmd/install-shim/internal/place", false},
	} {
		a, ok := arrowOf(module + "/" + row.pkg)
		if !ok {
			t.Errorf("%s has no arrow", row.pkg)
			continue
		}
		if got := mayImport(a, row.imp); got != row.want {
			t.Errorf("%s may import %s: %v, want %v", row.pkg, row.imp, got, row.want)
		}
	}
}

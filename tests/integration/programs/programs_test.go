package programs

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/tests/integration/launch"
)

// optional are the programs that a machine need not have, in CI neither.
var optional = []string{"man", "ssh-keygen", "dpkg"}

// TestProgramsDoAsThePageSays runs each check without the shim, and with it for each place at
// which something is hidden. Beside the work, the outcome is the same but for
// what freezing means; elsewhere, what breaks is what the table says.
func TestProgramsDoAsThePageSays(t *testing.T) {
	launch.Need(t, launch.Landlock)
	cache := ""
	if _, err := exec.LookPath("go"); err == nil {
		cache = warmCache(t)
	}
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		tl := findTools(t, u)
		tl.goCache = cache
		for _, c := range checks {
			t.Run(c.name, func(t *testing.T) {
				if why := tl.missing[c.needs]; why != "" {
					if os.Getenv("CI") != "" && !slices.Contains(optional, c.needs) {
						t.Fatalf("%s: %s", c.needs, why)
					}
					t.Skipf("%s: %s", c.needs, why)
				}
				t.Parallel()
				c.try(t, u, tl)
			})
		}
	})
}

func (c check) try(t *testing.T, u launch.User, tl tools) {
	t.Helper()
	want := newYard(t, u, tl, places[0]).free(t, c.script)
	if want.Code != 0 || want.Stdout == "" {
		t.Fatalf("without the shim: %+v", want)
	}
	for _, p := range places {
		y := newYard(t, u, tl, p)
		got, report := y.held(t, c.script, p)
		if p.name == "work" {
			// Its warning is tried in TestWhatFreezesIsSaid.
			_, got.Stderr, _ = strings.Cut(got.Stderr, "\n")
		}
		broken := got.Code != want.Code || got.Signal != want.Signal || got.Stdout != want.Stdout
		expected := c.breaks.in(p, u.UID == 0)
		if broken != expected {
			t.Errorf("%s: breaks %v, want %v; -without +with:\n%s", p.name, broken, expected, cmp.Diff(want, got))
		}
		if p.name == "beside" && !expected && got.Stderr != want.Stderr {
			t.Errorf("%s: stderr, -without +with:\n%s", p.name, cmp.Diff(want.Stderr, got.Stderr))
		}
		if report.Mechanism != "landlock" || len(report.Hidden) != 1 {
			t.Errorf("%s: not confined: %+v", p.name, report)
		}
		if p.frozen != "" && !slices.Contains(report.Frozen, y.at(p.frozen)) {
			t.Errorf("%s: the report does not say that %s is frozen: %q", p.name, p.frozen, report.Frozen)
		}
		for _, dir := range []string{"home", "tmp", "x/work"} {
			if dir != p.frozen && slices.Contains(report.Frozen, y.at(dir)) {
				t.Errorf("%s: %s is frozen too", p.name, dir)
			}
		}
	}
}

// TestWhatFreezesIsSaid: what will break is said before it breaks.
func TestWhatFreezesIsSaid(t *testing.T) {
	launch.Need(t, launch.Landlock)
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		tl := tools{shims: launch.Dir(t), path: "/usr/bin:/bin"}
		launch.Install(t, tl.shims, "bash", launch.Record{Real: bash})
		for _, p := range places {
			t.Run(p.name, func(t *testing.T) {
				y := newYard(t, u, tl, p)
				r := y.launch(t, "echo started", map[string]any{"hidden": []string{y.at(p.hidden)}})
				report := launch.Report(t, y.at("report/r"))
				code, stdout, stderr := 0, "started\n", ""
				switch p.name {
				case "temp":
					code, stdout = 125, ""
					stderr = `sandbox-exec-shim: bash: policy: hidden[0]: ` + quoted(y.at(p.hidden)) + `: would freeze the temp directory ` + quoted(y.at("tmp"))
				case "work":
					stderr = `sandbox-exec-shim: bash: warning: the current directory ` + quoted(y.at("x/work")) + ` is frozen`
				}
				if r.Code != code || r.Stdout != stdout {
					t.Errorf("got %v, want exit %d and %q", r, code, stdout)
				}
				if (stderr == "") != (r.Stderr == "") || !strings.HasPrefix(r.Stderr, stderr) || strings.Count(r.Stderr, "\n") > 1 {
					t.Errorf("stderr %q, want one line that begins with %q", r.Stderr, stderr)
				}
				if p.name != "temp" && p.frozen != "" && !slices.Contains(report.Frozen, y.at(p.frozen)) {
					t.Errorf("not in the report: %q", report.Frozen)
				}
			})
		}
	})
}

func quoted(s string) string { return `"` + s + `"` }

// TestPageHasEveryCheck: docs/compatibility.md has a row for each check, with what it
// breaks.
func TestPageHasEveryCheck(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "compatibility.md"))
	if err != nil {
		t.Fatal(err)
	}
	var got, want []string
	for line := range strings.Lines(string(data)) {
		if strings.HasPrefix(line, "| `") {
			got = append(got, strings.TrimSpace(line))
		}
	}
	for _, c := range checks {
		want = append(want, c.row())
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("-tested +page:\n%s", d)
	}
}

// row is the check's line in the table of the page.
func (c check) row() string {
	var b strings.Builder
	b.WriteString("| `" + c.name + "` |")
	for _, p := range places {
		switch root, other := c.breaks.in(p, true), c.breaks.in(p, false); {
		case root && other:
			b.WriteString(" breaks |")
		case root:
			b.WriteString(" breaks for root |")
		default:
			b.WriteString(" works |")
		}
	}
	return b.String()
}

// TestNpmNeedsOnlyItsDirectory: npm breaks in a frozen HOME only because it cannot make its
// directory there.
func TestNpmNeedsOnlyItsDirectory(t *testing.T) {
	launch.Need(t, launch.Landlock, launch.Program("npm"))
	i := slices.IndexFunc(checks, func(c check) bool { return c.name == "npm install" })
	j := slices.IndexFunc(places, func(p place) bool { return p.name == "home" })
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		y := newYard(t, u, findTools(t, u), places[j])
		u.Mkdir(t, y.at("home/.npm"), 0o755)
		got, _ := y.held(t, checks[i].script, places[j])
		if got.Code != 0 || got.Stdout != "42\n" {
			t.Errorf("got %+v", got)
		}
	})
}

// TestVenvWithPipIsMade is apart from the table, since installing pip takes longer
// than all the rest of it.
func TestVenvWithPipIsMade(t *testing.T) {
	launch.Need(t, launch.Landlock, launch.Program("/usr/bin/python3"))
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		t.Parallel()
		y := newYard(t, u, findTools(t, u), places[0])
		got, _ := y.held(t, `/usr/bin/python3 -m venv v && v/bin/pip --version | cut -c1-4`, places[0])
		if got.Code != 0 || got.Stdout != "pip \n" {
			t.Errorf("got %+v", got)
		}
	})
}

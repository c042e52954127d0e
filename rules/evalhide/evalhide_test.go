package evalhide_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules/evalhide"
)

// checkout makes a directory outside of /tmp's name, as the caller of Policy
// would have it, with the given files.
func checkout(t *testing.T, files map[string]string) string {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		p := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func evalHide(t *testing.T, e evalhide.Attempt) *evalhide.Result {
	t.Helper()
	if e.SharedTemp == "" {
		e.SharedTemp = "/sys/nowhere/shared" // the test's own files may be in /tmp
	}
	out, err := evalhide.Policy(e)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestCase71_PlainCheckout(t *testing.T) {
	root := checkout(t, map[string]string{"repo/.git/HEAD": "ref"})
	out := evalHide(t, evalhide.Attempt{
		Repo: root + "/repo/", Temp: "/srv/attempts//", Private: "/srv/attempts/control", Required: true,
		Evidence: "/srv/evidence", RunnerTemp: "/srv/runner/./tmp", Hide: []string{"/srv/more", "/srv/evidence"},
	})
	want := []string{
		root + "/repo/tests", root + "/repo/.git", root + "/repo/.manual-private-trusted",
		"/srv/attempts/artifacts-private", "/srv/attempts/control", "/srv/attempts/selected-private-inputs", "/srv/attempts/playwright-transform-cache",
		"/srv/evidence", "/srv/runner/tmp", "/srv/more",
	}
	if diff := cmp.Diff(want, out.Hidden); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	p, err := rules.Parse(out.Text)
	if err != nil {
		t.Fatal(err)
	}
	var paths []string
	for _, e := range p.Hidden {
		paths = append(paths, e.Path)
	}
	if diff := cmp.Diff(want, paths); diff != "" {
		t.Errorf("in the text: -want +got\n%s", diff)
	}
	if !p.Required || p.Scope != rules.ScopeLocal {
		t.Errorf("required %v, scope %v", p.Required, p.Scope)
	}
	if out.Unhideable != nil || out.Skipped != nil {
		t.Errorf("unhideable %q, skipped %q", out.Unhideable, out.Skipped)
	}
	if out = evalHide(t, evalhide.Attempt{Repo: root + "/repo", Temp: "/a", Private: "/b"}); !strings.Contains(string(out.Text), `"required":false`) {
		t.Errorf("not required: %s", out.Text)
	}
}

func TestCase72_LinkedWorkTree(t *testing.T) {
	for name, pointer := range map[string]string{"absolute": "$ROOT/main/.git/worktrees/w", "relative": "../main/.git/worktrees/w"} {
		t.Run(name, func(t *testing.T) {
			root := checkout(t, map[string]string{"main/.git/worktrees/w/commondir": "../..\n", "repo/file": ""})
			text := "gitdir: " + strings.ReplaceAll(pointer, "$ROOT", root) + "\n"
			if err := os.WriteFile(root+"/repo/.git", []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
			out := evalHide(t, evalhide.Attempt{Repo: root + "/repo", Temp: "/a", Private: "/b", Required: true})
			want := []string{
				root + "/repo/tests", root + "/repo/.git", root + "/main/.git/worktrees/w", root + "/main/.git", root + "/repo/.manual-private-trusted",
			}
			if diff := cmp.Diff(want, out.Hidden[:len(want)]); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	}
	t.Run("no pointer", func(t *testing.T) {
		root := checkout(t, map[string]string{"repo/.git": "nothing\n"})
		out := evalHide(t, evalhide.Attempt{Repo: root + "/repo", Private: "/b"})
		want := []string{root + "/repo/tests", root + "/repo/.git", root + "/repo/.manual-private-trusted", "/b"}
		if diff := cmp.Diff(want, out.Hidden); diff != "" {
			t.Errorf("-want +got\n%s", diff)
		}
	})
}

func TestCase73_Unhideable(t *testing.T) {
	base := evalhide.Attempt{Repo: "/srv/repo", Temp: "/srv/attempts", Private: "/srv/private", SharedTemp: "/scratch"}
	for _, row := range []struct {
		name string
		edit func(*evalhide.Attempt)
		want []string
	}{
		{"private is the temporary root", func(e *evalhide.Attempt) { e.Private = "/srv/attempts" }, []string{"/srv/attempts"}},
		{"private holds the temporary root", func(e *evalhide.Attempt) { e.Private = "/srv" }, []string{"/srv"}},
		{"private is the checkout", func(e *evalhide.Attempt) { e.Private = "/srv/repo/" }, []string{"/srv/repo"}},
		{"private is the shared temp", func(e *evalhide.Attempt) { e.Private = "/scratch" }, []string{"/scratch"}},
		{"private lies in the shared temp", func(e *evalhide.Attempt) { e.Private = "/scratch/x" }, []string{"/scratch/x"}},
		{"private holds the shared temp", func(e *evalhide.Attempt) { e.Private = "/scratch/x"; e.SharedTemp = "/scratch/x/y" }, []string{"/scratch/x"}},
		{"private is the root directory", func(e *evalhide.Attempt) { e.Private = "/" }, []string{"/"}},
		{"a name beside the shared temp", func(e *evalhide.Attempt) { e.Private = "/scratch-evil" }, nil},
		{"temporary root in the shared temp", func(e *evalhide.Attempt) { e.Temp = "/scratch/t" }, []string{
			"/scratch/t/artifacts-private", "/scratch/t/control", "/scratch/t/selected-private-inputs", "/scratch/t/playwright-transform-cache",
		}},
		{"checkout in the shared temp", func(e *evalhide.Attempt) { e.Repo = "/scratch/r" }, []string{
			"/scratch/r/tests", "/scratch/r/.git", "/scratch/r/.manual-private-trusted",
		}},
		{"more to hide", func(e *evalhide.Attempt) { e.Hide = []string{"/srv/repo", "/scratch", "/srv/repo"} }, []string{"/srv/repo", "/scratch"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			e := base
			row.edit(&e)
			out, err := evalhide.Policy(e)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(row.want, out.Unhideable); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
			if len(out.Hidden) < 4 {
				t.Errorf("the rest is hidden no more: %q", out.Hidden)
			}
			for _, p := range row.want {
				if slices.Contains(out.Hidden, p) {
					t.Errorf("%s is hidden as well", p)
				}
			}
			e.Required = true
			_, err = evalhide.Policy(e)
			bad, is := errors.AsType[*evalhide.UnhideableError](err)
			switch {
			case row.want == nil:
				if err != nil {
					t.Errorf("required: %v", err)
				}
			case !is || !slices.Equal(bad.Paths, row.want):
				t.Errorf("required: %v", err)
			default:
				for _, p := range row.want {
					if !strings.Contains(err.Error(), `"`+p+`"`) {
						t.Errorf("the error does not name %s: %v", p, err)
					}
				}
				if !strings.HasPrefix(err.Error(), "agent_filesystem_sandbox_incomplete: ") {
					t.Errorf("error %v", err)
				}
			}
		})
	}
	if !strings.Contains(evalhide.UnhideableHint, "/var/tmp") {
		t.Error("the hint does not name /var/tmp")
	}
	if out, err := evalhide.Policy(evalhide.Attempt{Private: "/tmp/x"}); err != nil || len(out.Unhideable) != 1 {
		t.Errorf("without a shared temp, /tmp counts: %+v, %v", out, err)
	}
}

func TestCase74_OptionalAndBlank(t *testing.T) {
	base := evalhide.Attempt{Repo: "/srv/repo", Temp: "/srv/attempts", Private: "/srv/private", SharedTemp: "/scratch", Required: true}
	plain, err := evalhide.Policy(base)
	if err != nil {
		t.Fatal(err)
	}
	for name, edit := range map[string]func(*evalhide.Attempt){
		"evidence cannot be hidden":   func(e *evalhide.Attempt) { e.Evidence = "/scratch/e" },
		"evidence holds the checkout": func(e *evalhide.Attempt) { e.Evidence = "/srv" },
		"runner temp is shared":       func(e *evalhide.Attempt) { e.RunnerTemp = "/scratch" },
		"blank":                       func(e *evalhide.Attempt) { e.Evidence, e.RunnerTemp = "", " " },
		"relative":                    func(e *evalhide.Attempt) { e.Evidence, e.RunnerTemp = "evidence", "./tmp" },
	} {
		e := base
		edit(&e)
		out, err := evalhide.Policy(e)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if diff := cmp.Diff(plain, out); diff != "" {
			t.Errorf("%s: -want +got\n%s", name, diff)
		}
	}
	for _, row := range []struct {
		name    string
		e       evalhide.Attempt
		skipped []string
		hidden  int
	}{
		{"blank", evalhide.Attempt{Private: "/p", Hide: []string{" "}}, []string{"repo", "temp", "hide"}, 1},
		{"relative", evalhide.Attempt{Repo: "repo", Temp: "./t", Private: "../p", Hide: []string{"h", "/h"}}, []string{"repo", "temp", "private", "hide"}, 1},
		{"nothing", evalhide.Attempt{Instance: "/srv/instance"}, []string{"repo", "temp", "private"}, 0},
		{"nothing that can be hidden", evalhide.Attempt{Private: "/tmp/p"}, []string{"repo", "temp"}, 0},
		{"instance in the shared temp", evalhide.Attempt{Repo: "/r", Temp: "/t", Private: "/p", Instance: "/tmp/i"}, []string{"instance"}, 8},
		{"relative instance", evalhide.Attempt{Repo: "/r", Temp: "/t", Private: "/p", Instance: "i"}, []string{"instance"}, 8},
	} {
		t.Run(row.name, func(t *testing.T) {
			out, err := evalhide.Policy(row.e)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(out.Skipped, row.skipped) || len(out.Hidden) != row.hidden || (out.Text == nil) != (row.hidden == 0) || out.Root != "" {
				t.Errorf("%+v", out)
			}
		})
	}
}

// The instance brings the profile of its runner.
func TestInstance(t *testing.T) {
	out, err := evalhide.Policy(evalhide.Attempt{Repo: "/r", Temp: "/t", Private: "/p", Instance: "/srv/instance/", Required: true})
	if err != nil {
		t.Fatal(err)
	}
	p, err := rules.Parse(out.Text)
	if err != nil {
		t.Fatal(err)
	}
	if out.Root != "/srv/instance" || p.Root != out.Root || p.Profile != rules.PaperclipRunner {
		t.Errorf("root %q, in the policy %q, profile %q", out.Root, p.Root, p.Profile)
	}
	if _, err := evalhide.Policy(evalhide.Attempt{Private: "/p/\xff"}); err == nil {
		t.Error("a path that JSON cannot hold was taken")
	}
}

func TestCase76_OwnGraders(t *testing.T) {
	out, err := evalhide.Policy(evalhide.Attempt{
		Repo: "/r", Temp: "/t", Private: "/p", Hide: []string{"/r/spec", "/srv/answers", `/srv/an "odd\name"`}, Required: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	p, err := rules.Parse(out.Text)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"/r/spec", "/srv/answers", `/srv/an "odd\name"`} {
		if !slices.ContainsFunc(p.Hidden, func(e rules.Entry) bool { return e.Path == want }) {
			t.Errorf("%s is not hidden: %s", want, out.Text)
		}
	}
}

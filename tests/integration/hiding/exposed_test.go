package hiding

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/tests/integration/launch"
)

func wantEnforced(t *testing.T, list []rules.Enforcement, what string) {
	t.Helper()
	for _, e := range list {
		if e.What == what {
			return
		}
	}
	t.Errorf("%q is not among what is enforced: %+v", what, list)
}

const hideExceptOwn = `{"version":1,"hidden":["$W/secret"],"exposed":["$W/secret/own"]}`

func TestCase31_ExposedIsOpen(t *testing.T) {
	launch.Need(t, launch.Landlock)
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		r := table(t, u, hideExceptOwn, nil, []row{
			{op: "read", path: "$W/secret/own/f", free: ok, held: ok},
			{op: "written", path: "$W/secret/own/f", free: ok, held: ok},
			{op: "list", path: "$W/secret/own", free: ok, held: ok},
			{op: "create", path: "$W/secret/own/new", free: ok, held: ok},
			{op: "unlink", path: "$W/secret/own/new", free: ok, held: ok},
			{op: "mkdir", path: "$W/secret/own/dir", free: ok, held: ok},
			{op: "rename", path: "$W/secret/own/f", to: "$W/secret/own/dir/f", free: ok, held: ok},
			{op: "read", path: "$W/secret/own/../f", free: ok, held: denied},
			{op: "read", path: "$W/secret/f", free: ok, held: denied},
			{op: "list", path: "$W/secret/sub", free: ok, held: denied},
			{op: "list", path: "$W/secret", free: ok, held: denied},
			{op: "create", path: "$W/secret/new", free: ok, held: denied},
			{op: "rename", path: "$W/secret/f", to: "$W/secret/own/stolen", free: ok, held: denied},
			{op: "rename", path: "$W/secret/own", to: "$W/secret/own2", free: ok, held: denied},
		})
		if len(r.Exposed) != 1 || !strings.HasSuffix(r.Exposed[0], "/secret/own") {
			t.Errorf("the report's exposed is %q", r.Exposed)
		}
	})
}

func TestExposedFileIsOpen(t *testing.T) {
	launch.Need(t, launch.Landlock)
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		table(t, u, `{"version":1,"hidden":["$W/secret"],"exposed":["$W/secret/own/f"]}`, nil, []row{
			{op: "read", path: "$W/secret/own/f", free: ok, held: ok},
			{op: "written", path: "$W/secret/own/f", free: ok, held: ok},
			{op: "list", path: "$W/secret/own", free: ok, held: denied},
			{op: "read", path: "$W/secret/f", free: ok, held: denied},
			{op: "unlink", path: "$W/secret/own/f", free: ok, held: denied},
		})
	})
}

// Exposures that cannot be: the launch stops, whatever "required" says.
func TestCase32to36_ImpossibleExposuresAreRefused(t *testing.T) {
	launch.Need(t, launch.Landlock)
	for _, c := range []struct {
		name, hidden, exposed string
		want                  []string
	}{
		{"Case32 missing", `"$W/secret"`, `"$W/secret/missing"`, []string{"exposed[0]", "$W/secret/missing", "does not exist"}},
		{"Case33 outside", `"$W/secret"`, `"$W/work"`, []string{"exposed[0]", "$W/work", "beneath no hidden path"}},
		{"Case33 beside a longer name", `"$W/secret"`, `"$W/secret-not"`, []string{"exposed[0]", "beneath no hidden path"}},
		{"Case34 the hidden itself", `"$W/secret"`, `"$W/secret"`, []string{"exposed[0]", "is itself hidden"}},
		{"Case34 the hidden itself by a link", `"$W/secret"`, `"$W/work/dirlink"`, []string{"exposed[0]", "is itself hidden"}},
		{"Case34 holds a hidden path", `"$W/secret","$W/secret/own/f"`, `"$W/secret/own"`, []string{"exposed[0]", "reveal"}},
		{"Case34 holds a hidden path that does not exist", `"$W/secret","$W/secret/own/later"`, `"$W/secret/own"`, []string{"exposed[0]", "reveal"}},
		{"Case36 link to its neighbour", `"$W/secret"`, `"$W/secret/tosub"`, []string{"exposed[0]", "symlink"}},
		{"Case36 link out", `"$W/secret"`, `"$W/secret/out"`, []string{"exposed[0]"}},
		{"Case36 link in the middle", `"$W/secret"`, `"$W/secret/self/own"`, []string{"exposed[0]", "symlink"}},
		{"Case36 dangling link", `"$W/secret"`, `"$W/secret/nowhere"`, []string{"exposed[0]"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			launch.EachUser(t, func(t *testing.T, u launch.User) {
				w := newWorld(t, u)
				w.mkdir(t, "$W/secret-not")
				w.symlink(t, "$W/secret", "$W/work/dirlink")
				w.symlink(t, "sub", "$W/secret/tosub")
				w.symlink(t, "../work", "$W/secret/out")
				w.symlink(t, ".", "$W/secret/self")
				w.symlink(t, "missing", "$W/secret/nowhere")
				for _, required := range []string{"true", "false"} {
					w.refused(t, `{"version":1,"required":`+required+`,"hidden":[`+c.hidden+`],"exposed":[`+c.exposed+`]}`, c.want...)
				}
				// The same world takes a right exposure.
				got, _ := w.held(t, hideExceptOwn, try{"read", "$W/secret/own/f", ""}, try{"read", "$W/secret/f", ""})
				if d := cmp.Diff([]string{ok, denied}, errnos(got)); d != "" {
					t.Errorf("-want +got:\n%s", d)
				}
			})
		})
	}
}

func TestCase34_TwoHiddenAboveOneExposed(t *testing.T) {
	launch.Need(t, launch.Landlock)
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		table(t, u, `{"version":1,"hidden":["$W/secret","$W/secret/own"],"exposed":["$W/secret/own/f"]}`, nil, []row{
			{op: "read", path: "$W/secret/own/f", free: ok, held: ok},
			{op: "list", path: "$W/secret/own", free: ok, held: denied},
			{op: "read", path: "$W/secret/f", free: ok, held: denied},
		})
	})
}

// A link above the hidden path may be in the exposed one, a link below not.
func TestExposedMayBeReachedByLinksAbove(t *testing.T) {
	launch.Need(t, launch.Landlock)
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		table(t, u, `{"version":1,"hidden":["$W/secret"],"exposed":["$W/work/up/secret/own"]}`, func(t *testing.T, w *world) {
			w.symlink(t, "..", "$W/work/up")
		}, []row{
			{op: "read", path: "$W/secret/own/f", free: ok, held: ok},
			{op: "read", path: "$W/work/up/secret/own/f", free: ok, held: ok},
			{op: "read", path: "$W/work/up/secret/f", free: ok, held: denied},
		})
	})
}

func TestCase35_UnreadableExposedIsRefused(t *testing.T) {
	launch.Need(t, launch.Landlock)
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		w := newWorld(t, u)
		if err := os.Chmod(w.at("$W/secret/own"), 0); err != nil {
			t.Fatal(err)
		}
		if u.UID != 0 {
			w.refused(t, hideExceptOwn, "exposed path", "$W/secret/own", "permission denied")
			return
		}
		// Root reads it by CAP_DAC_OVERRIDE, which "restricted" leaves.
		got, _ := w.held(t, hideExceptOwn, try{"read", "$W/secret/own/f", ""}, try{"read", "$W/secret/f", ""})
		if d := cmp.Diff([]string{ok, denied}, errnos(got)); d != "" {
			t.Errorf("-want +got:\n%s", d)
		}
		// Without capabilities root is its owner and no more.
		w.setup = &launch.Setup{DropBounding: allCapabilities()}
		w.refused(t, hideExceptOwn, "exposed path", "$W/secret/own", "permission denied")
	})
}

func TestCase37_SpellingsOfAPathAreOne(t *testing.T) {
	launch.Need(t, launch.Landlock)
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		w := newWorld(t, u)
		tries := []try{
			{"read", "$W/secret/f", ""}, {"list", "$W/secret", ""}, {"read", "$W/secret/own/f", ""}, {"read", "$W/work/f", ""},
		}
		clean, want := w.held(t, hideExceptOwn, tries...)
		if d := cmp.Diff([]string{denied, denied, ok, ok}, errnos(clean)); d != "" {
			t.Fatalf("-want +got:\n%s", d)
		}
		for _, text := range []string{
			`{"version":1,"hidden":["$W/secret","$W/secret"],"exposed":["$W/secret/own","$W/secret/own"]}`,
			`{"version":1,"hidden":["$W/secret/"],"exposed":["$W/secret/own///"]}`,
			`{"version":1,"hidden":["/$W//secret"],"exposed":["$W/secret//own"]}`,
			`{"version":1,"hidden":["$W/./secret/."],"exposed":["$W/secret/./own/./"]}`,
			`{"version":1,"hidden":["$W/work/../secret","$W/secret/sub/.."],"exposed":["$W/secret/sub/../own"]}`,
		} {
			got, r := w.held(t, text, tries...)
			if d := cmp.Diff(errnos(clean), errnos(got)); d != "" {
				t.Errorf("%s: -clean +got:\n%s", text, d)
			}
			if d := cmp.Diff([][]string{want.Hidden, want.Exposed, want.Frozen}, [][]string{r.Hidden, r.Exposed, r.Frozen}); d != "" {
				t.Errorf("%s: report: -clean +got:\n%s", text, d)
			}
		}
	})
}

func TestCase38_WhatCannotBeHiddenIsRefused(t *testing.T) {
	launch.Need(t, launch.Landlock)
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		w := newWorld(t, u)
		real := launch.Look(t, "true")
		for _, c := range []struct {
			hidden, program string
			want            []string
		}{
			{"/", real, []string{"hidden[0]", "everything"}},
			{"/..", real, []string{"hidden[0]", "everything"}},
			{"$W/secret/p", "$W/secret/p", []string{"hidden[0]", "the program", "$W/secret/p"}},
			{"$W/secret", "$W/secret/p", []string{"hidden[0]", "the program", "$W/secret/p"}},
			{"$W/secret", "$W/work/plink", []string{"hidden[0]", "the program", "$W/secret/p"}},
			{loader(), "$W/work/p", []string{"hidden[0]", "loader"}},
			{"$W/secret", "$W/work/script", []string{"hidden[0]", "interpreter", "$W/secret/p"}},
			{"/proc/1", real, []string{"hidden[0]", "/proc"}},
			{"/proc/self/root/$W/secret", real, []string{"hidden[0]", "/proc"}},
		} {
			for _, path := range []string{"$W/work/script", "$W/work/plink"} {
				_ = os.Remove(w.at(path))
			}
			w.symlink(t, "$W/secret/p", "$W/work/plink")
			w.write(t, "$W/work/script", "#!"+w.at("$W/secret/p")+"\n")
			if err := os.Chmod(w.at("$W/work/script"), 0o755); err != nil {
				t.Fatal(err)
			}
			// An installed record with this program.
			w.shim = launch.Install(t, launch.Dir(t), "witness", launch.Record{Real: w.at(c.program)})
			w.refused(t, `{"version":1,"hidden":["`+c.hidden+`"]}`, c.want...)
			// The positive control: the program starts under another policy.
			r := w.command(t, w.policy(t, `{"version":1,"hidden":["$W/secret/f"]}`), nil).Run(t)
			if r.Code != 0 {
				t.Errorf("%s does not start under a policy that leaves it alone: %v", c.program, r)
			}
		}
	})
}

// With scope unrestricted what is hidden stays hidden, and all that is needed
// for it stays too.
func TestUnrestrictedStillHides(t *testing.T) {
	launch.Need(t, launch.Landlock)
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		w := newWorld(t, u)
		out, r := w.held(t, `{"version":1,"scope":"unrestricted","hidden":["$W/secret"],"exposed":["$W/secret/own"]}`,
			try{"read", "$W/secret/f", ""}, try{"read", "$W/secret/own/f", ""}, try{"create", "$W/work/new", ""},
			try{"write", "/proc/sys/kernel/core_pattern", ""}, try{"capabilities", "", ""})
		if d := cmp.Diff([]string{denied, ok, ok, denied, ok}, errnos(out)); d != "" {
			t.Errorf("-want +got:\n%s", d)
		}
		wantEnforced(t, r.Enforced, "hidden")
		caps := out[4].Data
		if !strings.Contains(caps, "NoNewPrivs: 1") || strings.Contains(caps, "CapEff: 000001f") {
			t.Errorf("status: %s", caps)
		}
	})
}

package runscope

import (
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/tests/integration/launch"
)

var seven = []string{
	"$R/acpx", "$I/companies", "$I/projects", "$I/workspaces", "$I/runtime-context-assets", "$I/skills", "$I/runtime/provider-packs",
}

func TestCase45_SharedDirectoriesAreMade(t *testing.T) {
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		w := newWorld(t, u)
		u.Mkdir(t, w.at("$I/projects"), 0o755)
		for _, dir := range []string{"$I/secrets", "$I/db", "$I/data/backups"} {
			if err := os.RemoveAll(w.at(dir)); err != nil {
				t.Fatal(err)
			}
		}
		_, r := w.held(t, own())
		for _, dir := range seven {
			want := os.FileMode(0o700)
			if dir == "$I/projects" {
				want = 0o755
			}
			info, err := os.Lstat(w.at(dir))
			if err != nil || info.Mode() != os.ModeDir|want {
				t.Errorf("%s: %v, %v; want %v", dir, info, err, want)
			}
		}
		for _, dir := range []string{"$I/secrets", "$I/db", "$I/data/backups"} {
			if _, err := os.Lstat(w.at(dir)); !os.IsNotExist(err) {
				t.Errorf("%s: %v", dir, err)
			}
		}
		if diff := cmp.Diff(w.all(seven), r.Precreated); diff != "" {
			t.Errorf("precreated (-want +got)\n%s", diff)
		}
	})
}

func TestCase46_FailedPrecreateStops(t *testing.T) {
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		w := newWorld(t, u)
		u.Write(t, w.at("$I/projects"), "", 0o644)
		w.refused(t, own(), "profile.precreate[2]", "$I/projects", "not a directory")
		if r := w.report(t); r.Outcome != "error" {
			t.Errorf("outcome %q", r.Outcome)
		}
		w.policy = `{"version":1,"precreate":["$I/projects/x"]}`
		w.refused(t, own(), "precreate[0]", "$I/projects/x")
		w.policy = `{"version":1,"precreate":["$W/fine/x"]}`
		if got, _ := w.held(t, nil, try{Op: "list", Path: "$W/fine/x"}); got[0].Errno != ok {
			t.Errorf("a policy that only precreates: %v", got)
		}
	})
}

func TestCase47_WhatIsAddedLaterIsReadable(t *testing.T) {
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		w := newWorld(t, u)
		cmd := w.command(t, w.text(), own(), []try{
			{Op: "create", Path: "$I/skills/started"}, {Op: "await", Path: "$I/skills/go"}, {Op: "read", Path: "$I/skills/new"}, {Op: "read", Path: "$I/later/f"},
		})
		p := cmd.Start(t)
		await(t, w.at("$I/skills"), "started")
		u.Write(t, w.at("$I/skills/new"), "added", 0o644)
		u.Mkdir(t, w.at("$I/later"), 0o755)
		u.Write(t, w.at("$I/later/f"), "added", 0o644)
		u.Write(t, w.at("$I/skills/go"), "", 0o644)
		got := results(t, p.Wait(t), 4)
		if got[2].Data != "added" || got[3].Errno != denied {
			t.Errorf("%v", got)
		}
	})
}

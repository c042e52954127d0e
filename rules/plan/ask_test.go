package plan_test

import (
	"testing"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/pathcheck"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/pathcheck/pathtest"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules/plan"
)

// TestAsk: what a plan tells of an inode, a path, a file system and a mount. It
// decides about descriptors that a launch inherits.
func TestAsk(t *testing.T) {
	tree := pathtest.New(base + "/srv/secret/disk/ mount ext4 8:2\n/srv/secret/disk/f\n/home/u/.ssh/other\n/data/ mount ext4 8:3\n/data/f")
	p := policy("-/srv/secret -/home/u/.ssh -/gone/hidden +/srv/secret/open")
	pl, err := plan.Make(p, user(tree), tree)
	if err != nil {
		t.Fatal(err)
	}

	for path, want := range map[string]string{
		"/srv/secret": "/srv/secret", "/home/u/.ssh": "/home/u/.ssh",
		"/srv/secret/open": "", "/srv": "", "/srv/secret/deep": "", "/data": "",
	} {
		got, ok := pl.HidesID(tree.Info(path).ID)
		if got != want || ok != (want != "") {
			t.Errorf("the inode of %s is hidden as %q, %v; want %q", path, got, ok, want)
		}
	}
	if path, ok := pl.HidesID(pathcheck.ID{}); ok {
		t.Errorf("what does not exist has the inode of %s", path)
	}

	for path, want := range map[string]bool{"/srv/secret/open": true, "/srv/secret": false, "/srv/secret/open/f": false} {
		if got := pl.ExposesID(tree.Info(path).ID); got != want {
			t.Errorf("the inode of %s is exposed: %v, want %v", path, got, want)
		}
	}

	for path, want := range map[string]bool{
		"/srv/secret": true, "/srv/secret/deep/key": true, "/gone/hidden/x": true,
		"/srv/secret/open": false, "/srv/secret/open/f": false, "/srv": false, "/srv/secret-evil": false, "/": false,
	} {
		if got := pl.Hides(path); got != want {
			t.Errorf("%s is hidden: %v, want %v", path, got, want)
		}
	}
	for path, want := range map[string]bool{"/": true, "/srv": true, "/home/u": true, "/srv/work": false, "/srv/secret": false} {
		if got := pl.Freezes(path); got != want {
			t.Errorf("%s is frozen: %v, want %v", path, got, want)
		}
	}

	mounts := map[string]pathcheck.Mount{}
	for _, m := range tree.Mounts() {
		mounts[m.Point] = m
		if !pl.HasMount(uint64(m.ID)) {
			t.Errorf("the mount at %s is not in the table", m.Point)
		}
	}
	if pl.HasMount(1 << 20) {
		t.Error("a mount that nobody has is in the table")
	}
	for _, row := range []struct {
		name, file, point string
		want              string
	}{
		{"the device of a hidden path", "/srv", "/", "/srv/secret"},
		{"a device mounted beneath one", "/srv/secret/disk/f", "/srv/secret/disk", "/srv/secret"},
		{"another device", "/data/f", "/data", ""},
	} {
		got, ok := pl.HidesOn(tree.Info(row.file).ID.Dev, mounts[row.point].Dev)
		if got != row.want || ok != (row.want != "") {
			t.Errorf("%s: %q, %v; want %q", row.name, got, ok, row.want)
		}
	}
}
